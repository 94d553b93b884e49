#include "sweep/row.hpp"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/json_text.hpp"
#include "core/suggest.hpp"
#include "core/version.hpp"
#include "report/json_dump.hpp"
#include "report/run_json.hpp"

namespace hbmscope {
namespace {

using Json = nlohmann::json;

void append_value(JsonText& to, const AxisValue& value) {
  switch (value.type) {
    case AxisValue::Type::text:
      return to.value(value.text);
    case AxisValue::Type::number:
      return to.raw(value.text);
    case AxisValue::Type::truth:
      return to.value(value.text == "on");
  }
}

/// Reads what a head holds on the way through the whole line, and keeps nothing else.
class HeadReader : public nlohmann::json_sax<Json> {
 public:
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] const std::string& schema_version() const { return schema_version_; }
  [[nodiscard]] const RowHead& head() const { return head_; }
  [[nodiscard]] bool is_object() const { return is_object_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }  // negative: no index is
  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ == 2 && outer_ == "sweep" && value <= static_cast<std::uint64_t>(INT64_MAX)) {
      if (inner_ == "index") head_.index = static_cast<std::int64_t>(value);
      if (inner_ == "points") head_.points = static_cast<std::int64_t>(value);
    }
    return true;
  }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& text) override {
    if (depth_ == 1 && outer_ == "schema_version") schema_version_ = text;
    if (depth_ != 2) return true;
    if (std::string* const wanted = member()) *wanted = text;
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ == 0) is_object_ = true;
    ++depth_;
    return true;
  }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override { return ++depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool key(string_t& name) override {
    if (depth_ == 1) outer_ = name;
    if (depth_ == 2) inner_ = name;
    if (depth_ == 3 && outer_ == "sweep" && inner_ == "axes" && name == "gpu") head_.gpu_is_axis = true;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error_ = "is no JSON from column " + std::to_string(position) + " on";
    return false;
  }

 private:
  std::string* member() {
    if (outer_ == "sweep") {
      if (inner_ == "sweep_key") return &head_.sweep_key;
      if (inner_ == "key") return &head_.key;
      if (inner_ == "status") return &head_.status;
    } else if (outer_ == "meta") {
      if (inner_ == "version") return &head_.version;
      if (inner_ == "git") return &head_.git;
      if (inner_ == "device") return &head_.device;
    } else if (outer_ == "gpu" && inner_ == "name") {
      return &head_.gpu;
    }
    return nullptr;
  }

  int depth_ = 0;
  bool is_object_ = false;
  std::string outer_, inner_, schema_version_, error_;
  RowHead head_;
};

std::string major_of(std::string_view version) {
  return std::string(version.substr(0, version.find('.')));
}

}  // namespace

RowWriter::RowWriter(const Grid& grid, std::string sweep_key, const std::string& device)
    : grid_(&grid), sweep_key_(std::move(sweep_key)), device_(device) {}

void RowWriter::append_head(std::string& to, std::int64_t index, std::string_view key) const {
  JsonText row(to);
  row.begin_object();
  row.member("schema_version", kSchemaVersion);
  row.key("sweep");
  row.begin_object();
  row.member("index", index);
  row.member("points", grid_->points());
  row.member("sweep_key", sweep_key_);
  row.member("key", key);
  row.key("axes");
  row.begin_object();
  for (std::size_t axis = 0; axis < grid_->axes().size(); ++axis) {
    row.key(grid_->axes()[axis].name());
    append_value(row, grid_->at(index, axis));
  }
  row.end_object();
}

void RowWriter::append_meta(std::string& to) const {
  JsonText row(to);
  row.key("meta");
  row.begin_object();
  row.member("tool", "hbmscope");
  row.member("version", hbmscope_version());
  row.member("git", hbmscope_git_revision());
  if (!device_.empty()) row.member("device", device_);
  row.end_object();
}

void RowWriter::append_result(std::string& to, const RunResult& result) const {
  JsonText row(to);
  row.member("status", "ok");
  row.member("reason", nullptr);
  row.end_object();
  append_meta(to);
  write_run_row(row, result);
  row.end_object();
  to += '\n';
}

void RowWriter::append_whole_result(std::string& to, const RunResult& result,
                                    const std::vector<std::string>& argv) const {
  JsonText row(to);
  row.member("status", "ok");
  row.member("reason", nullptr);
  row.end_object();
  nlohmann::ordered_json document = run_to_json(result, argv);
  document.erase("schema_version");
  std::string rest = json_dump(document);
  rest.front() = ',';  // in place of its brace: the row has begun already
  to += rest;
  to += '\n';
}

void RowWriter::append_failure(std::string& to, std::string_view reason, std::string_view gpu) const {
  JsonText row(to);
  row.member("status", "failed");
  row.member("reason", reason);
  row.end_object();
  append_meta(to);
  row.member("shape", nullptr);
  row.key("gpu");
  row.begin_object();
  row.key("name");
  if (gpu.empty()) {
    row.value(nullptr);
  } else {
    row.value(gpu);
  }
  row.end_object();
  row.key("algorithms");
  row.begin_list();
  row.end_list();
  row.end_object();
  to += '\n';
}

RowHead read_row(std::string_view line, const std::string& place) {
  const auto fail = [&](const std::string& what, const std::string& hint) {
    throw Error(ErrorKind::data, place + ": " + what, hint);
  };
  const char* const kNoRow = "these files are what `hbmscope sweep` writes, one row a line";
  HeadReader reader;
  const bool whole = Json::sax_parse(line, &reader);
  if (!whole || !reader.is_object()) fail(whole ? "is no JSON object" : reader.error(), kNoRow);
  const std::string& schema = reader.schema_version();
  if (schema.empty()) fail("has no schema_version", kNoRow);
  if (major_of(schema) != major_of(kSchemaVersion)) {
    fail("has schema_version " + in_quotes(schema) + ", and this program reads " + major_of(kSchemaVersion) + ".x",
         "take the release of hbmscope that wrote it");
  }
  const RowHead& head = reader.head();
  for (const auto& [name, text] : {std::pair("sweep/sweep_key", &head.sweep_key), std::pair("sweep/key", &head.key),
                                   std::pair("sweep/status", &head.status), std::pair("meta/version", &head.version),
                                   std::pair("meta/git", &head.git)}) {
    if (text->empty()) fail(std::string("has no text /") + name, kNoRow);
  }
  if (head.index < 0 || head.points < 1 || head.index >= head.points)
    fail("has no /sweep/index below its /sweep/points", kNoRow);
  if (head.status != "ok" && head.status != "failed")
    fail("/sweep/status is " + in_quotes(head.status) + ", neither ok nor failed", kNoRow);
  return head;
}

}  // namespace hbmscope
