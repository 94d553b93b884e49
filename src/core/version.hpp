#pragma once
#include <string_view>

namespace hbmscope {

/// Of this release, "0.1.0".
std::string_view hbmscope_version();
/// The git commit this program was built from, twelve hex digits, with "-dirty" when its sources had local changes;
/// "unknown" when built outside a git checkout.
std::string_view hbmscope_git_revision();

}  // namespace hbmscope
