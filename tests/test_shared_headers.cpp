// What tests share in headers has names that differ: files that include any of them are compiled as one.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "cli_checks.hpp"
#include "formula.hpp"
#include "helpers.hpp"
#include "json_once.hpp"
#include "json_schema.hpp"
#include "kernel_header.hpp"
#include "kernel_subjects.hpp"
#include "l2_shapes.hpp"
#include "lesson_checks.hpp"
#include "ncu_files.hpp"
#include "numerics_cases.hpp"
#include "plot_cases.hpp"
#include "process.hpp"
#include "profile_cases.hpp"
#include "public_cases.hpp"
#include "random_shapes.hpp"
#include "saved_cases.hpp"
#include "sweep_checks.hpp"

using namespace hbmscope::testing;

TEST_CASE("all headers of the tests stand together in this file") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(HBMSCOPE_SOURCE_DIR) / "tests";
  const std::string here = text_of_file((folder / "test_shared_headers.cpp").string());
  int headers = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".hpp") continue;
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    CHECK(has(here, "#include \"" + name + "\""));
    ++headers;
  }
  CHECK(headers > 10);
}
