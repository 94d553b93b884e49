#include "cli/app.hpp"

int main(int argc, char** argv) {
  return hbmscope::cli_main(argc, argv);
}
