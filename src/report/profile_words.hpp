#pragma once
#include <string>
#include <string_view>

#include "analysis/profile_import.hpp"

namespace hbmscope {

/// "flash_fwd_kernel" of "void flash_fwd_kernel<Traits<128, 64>, 0>(Params)": without what it returns, where it lives,
/// and what it takes.
std::string short_kernel_name(std::string_view name);

/// Options, as an example, that put a prediction beside these launches: with a --kernel that selects one of them where
/// several kernels ran and are no naive pipeline.
std::string options_of_prediction(const ProfileImport& import);

/// What a difference between counted and predicted bytes is, as a clause.
std::string difference_words(const Difference& difference);

}  // namespace hbmscope
