// formula.hpp: the arithmetic of kernel headers.
#include <doctest/doctest.h>

#include "formula.hpp"

using hbmscope::testing::Formula;
using hbmscope::testing::Names;

TEST_CASE("formulas are evaluated exactly, with the usual precedence") {
  const Names names{{"N", 7}, {"Tile::kB", 2}};
  CHECK(Formula::value("2 + 3*N - 10/5*(1+1)", names) == 19);
  CHECK(Formula::value("ceil(N/Tile::kB)*Tile::kB", names) == 8);
  CHECK(Formula::value("N/2*4", names) == 14);
  CHECK(Formula::value("max(N, 3*3) - min(2, N)", names) == 7);
  CHECK(Formula::value("3 - N + ceil((0-3)/2)", names) == -5);
  for (const char* text : {"N/2", "", "N N", "2*", "(N", "ceil(N", "max(N)", "abs(N, 2)", "n", "N/(7-N)", "N)"}) {
    CAPTURE(text);
    CHECK_THROWS(Formula::value(text, names));
  }
}
