#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/version.hpp"
#include "device/device.hpp"
#include "scenario/embedded.hpp"

using namespace hbmscope;
namespace fs = std::filesystem;

namespace {

using FilesByName = std::map<std::string, std::string, std::less<>>;

FilesByName json_files_in(const fs::path& folder) {
  FilesByName files;
  if (!fs::exists(folder)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    files[entry.path().stem().string()] = std::string(std::istreambuf_iterator<char>(stream), {});
  }
  return files;
}

FilesByName by_name(std::span<const EmbeddedFile> embedded) {
  FilesByName files;
  for (const EmbeddedFile& file : embedded) files[std::string(file.name)] = std::string(file.text);
  return files;
}

}  // namespace

TEST_CASE("the program carries every scenario and GPU file, byte for byte") {
  const fs::path scenarios = fs::path(HBMSCOPE_SOURCE_DIR) / "scenarios";
  CHECK(by_name(embedded_scenarios()) == json_files_in(scenarios));
  CHECK(by_name(embedded_gpus()) == json_files_in(scenarios / "gpu"));
}

TEST_CASE("the version is three numbers, the revision a commit or unknown") {
  const std::string_view version = hbmscope_version();
  CHECK(std::count(version.begin(), version.end(), '.') == 2);

  std::string_view revision = hbmscope_git_revision();
  if (revision == "unknown") return;
  if (revision.ends_with("-dirty")) revision.remove_suffix(std::string_view("-dirty").size());
  CHECK(revision.size() >= 12);
  CHECK(std::all_of(revision.begin(), revision.end(), [](unsigned char c) { return std::isxdigit(c) != 0; }));
}

TEST_CASE("a missing device comes with the reason, a present one with its name") {
  const DeviceStatus status = device_status();
  CHECK(status.present != status.name.empty());
  CHECK(status.present == status.reason.empty());
}
