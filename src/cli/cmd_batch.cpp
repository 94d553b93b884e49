#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <system_error>

#include "cli/app.hpp"
#include "cli/batch_stream.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"
#include "core/error.hpp"
#include "core/input_file.hpp"

namespace hbmscope {
namespace {

/// A file, or standard input for "-".
class Input {
 public:
  explicit Input(const std::string& path) : path_(path == "-" ? "standard input" : path) {
    if (path == "-") return;
    descriptor_ = open_input(path, Pipes::taken);
  }
  ~Input() {
    if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// The next bytes, as soon as there are some; none at the end.
  std::string_view read() {
    ssize_t count = 0;
    do {
      count = ::read(descriptor_, buffer_.data(), buffer_.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) fail("cannot be read");
    return {buffer_.data(), static_cast<std::size_t>(count)};
  }
  /// Does standard output end in the very file that is read? Then every line written would be read again.
  [[nodiscard]] bool is_standard_output() const {
    struct stat in {
    }, out{};
    return ::fstat(descriptor_, &in) == 0 && ::fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(in.st_mode) &&
           in.st_dev == out.st_dev && in.st_ino == out.st_ino;
  }
  [[nodiscard]] bool is_terminal() const { return ::isatty(descriptor_) == 1; }

 private:
  static constexpr const char* kHint = "give a file with one JSON object a line, or - for standard input";
  [[noreturn]] void fail(const char* what) const {
    const int code = errno;
    throw Error(ErrorKind::data, path_ + ": " + what + ": " + std::generic_category().message(code), kHint);
  }

  std::string path_;
  int descriptor_ = STDIN_FILENO;
  std::array<char, 1 << 16> buffer_;
};

void batch(const std::string& path) {
  Input input(path);
  if (input.is_standard_output()) {
    throw Error(ErrorKind::usage, path + ": is read, and standard output goes to the same file",
                "give the results a file of their own");
  }
  if (input.is_terminal()) {
    say_error("waiting for lines of JSON on this terminal", "Ctrl-D ends them; --help shows one");
  }
  BatchStream stream;
  std::string output;
  for (std::string_view piece = input.read(); !piece.empty() && !stream.endless(); piece = input.read()) {
    stream.feed(piece, output);
    write_stdout(output);
    output.clear();
  }
  stream.finish(output);
  write_stdout(output);
  if (stream.failed() == 0) return;
  throw Error(ErrorKind::data,
              std::to_string(stream.failed()) + " of " + std::to_string(stream.lines()) + " lines failed" +
                  (stream.endless() ? "; the last has no end, and the input was left there" : ""),
              R"(each has its reason and its line number in the output: {"error": ..., "line": ...})");
}

}  // namespace

void add_batch(CLI::App& app, const Invocation& /*invocation*/) {
  CLI::App* const command =
      app.add_subcommand("batch", "Closed-form bytes of many shapes, one JSON object a line in and out");
  wrap_help(*command);
  const auto path = std::make_shared<std::string>();
  command->add_option("FILE", *path, "The lines, or - for standard input")->required()->type_name("FILE.jsonl|-");
  command->footer(
      "A line in:\n"
      "  {\"shape\": {\"batch\": 1, \"num_heads\": 4, \"num_kv_heads\": 2, \"seqlen_q\": 1000, \"seqlen_kv\": 1000,\n"
      "   \"head_dim\": 64, \"dtype\": \"fp16\", \"window_right\": 0}, \"algorithm\": \"flash_v2\",\n"
      "   \"plan\": {\"block_q\": 128, \"block_kv\": 128}}\n"
      "Its line out: the same three keys, \"traffic\" (bytes between SM and L2 by tensor), \"live_pairs\"\n"
      "and \"compulsory\".\n"
      "A bad line gives {\"error\": \"...\", \"line\": 7}, the others go on, and the exit code is 3.\n"
      "Example: hbmscope batch shapes.jsonl > bytes.jsonl");
  command->callback([path] { batch(*path); });
}

}  // namespace hbmscope
