#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hbmscope {

struct MergeOptions {
  bool mixed = false;  ///< rows of several versions and GPUs are taken
};

/// Puts the shards of a sweep together. Rows are found where they lie and copied as they stand, so that the result has
/// the bytes of a sweep that was never divided; what is held in memory is a few words a row.
class Merge {
 public:
  /// Reads all rows. Throws an Error (kind data) that names file and line for what is no row, a last line that is torn,
  /// rows of several sweeps, and, unless `mixed`, of several versions of hbmscope or GPUs where the GPU is no axis; for
  /// an index that stands there twice with different rows; and one of kind check for points that are missing.
  Merge(const std::vector<std::string>& paths, MergeOptions options);
  ~Merge();
  Merge(const Merge&) = delete;
  Merge& operator=(const Merge&) = delete;

  /// Hands out the rows in the order of their indexes, in pieces.
  void write(const std::function<void(std::string_view)>& to) const;

  [[nodiscard]] std::int64_t points() const { return static_cast<std::int64_t>(rows_.size()); }
  [[nodiscard]] std::int64_t failed() const { return failed_; }
  [[nodiscard]] std::int64_t duplicates() const { return duplicates_; }  ///< identical ones, dropped

 private:
  /// Where a row lies: with its line feed, `bytes` from `offset` of file number `file` on.
  struct Row {
    std::int64_t index, offset, line;
    std::uint32_t file, bytes;
    bool failed;
  };
  struct File {
    std::string path;
    int descriptor = -1;
  };
  struct Common;

  void read(std::uint32_t file, Common& common, const MergeOptions& options);
  void put_in_order(std::int64_t points);
  [[nodiscard]] std::string text_of(const Row& row) const;
  [[nodiscard]] std::string place_of(const Row& row) const;

  std::vector<File> files_;
  std::vector<Row> rows_;
  std::int64_t failed_ = 0, duplicates_ = 0;
};

}  // namespace hbmscope
