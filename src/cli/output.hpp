#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace hbmscope {

/// Writes a result to standard output. A closed pipe ends the program silently; any other failure is an Error (kind
/// output).
void write_stdout(std::string_view text);

/// Throws at once what writing a result to `path` later would: no such folder, no right, a folder itself.
void check_result_path(const std::string& path);

/// Do both names lead to one file? Also by a link, and where neither is there yet.
bool is_same_file(const std::string& one, const std::string& other);

/// Writes a result to a file, whole or not at all: to a temporary beside it, then renamed. "-" is standard output. A
/// file that is there keeps its mode, and its owner where that is permitted; one that may not be written is refused; a
/// hard link comes apart from its others, which keep what they hold.
void write_result(const std::string& path, std::string_view text);

/// A result that is written piece by piece, else as write_result() does it: under another name until finish(). A signal
/// that ends the program waits for the next piece, and leaves no file either.
class ResultFile {
 public:
  explicit ResultFile(const std::string& path);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;
  void write(std::string_view text);
  void finish();

 private:
  struct Open;
  void drop();

  std::string given_path_;
  std::unique_ptr<Open> open_;  ///< nothing for standard output, and after the end
};

/// Opens a device or a pipe for writing; -1, with ENXIO in errno, for a pipe that nobody reads.
int open_for_writing(const std::string& path);

/// One sentence on standard error, and what to do about it.
void say_error(std::string_view message, std::string_view hint);

bool stdout_is_terminal();
bool stderr_is_terminal();
/// Bold and colours: on a terminal, unless NO_COLOR is set.
bool stdout_wants_colour();
/// Does standard output go to a terminal that shows UTF-8? A file or a pipe may end anywhere.
bool stdout_shows_utf8();
/// Columns of the terminal on standard output; 100 where it is none.
int output_width();

}  // namespace hbmscope
