#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hbmscope {

/// A name as it is compared: lower case, without '-', '_' and ' '. "RTX 4090" and "rtx-4090" are the same name.
std::string fold_name(std::string_view name);

/// A hint for a name nobody knows: `did you mean "flash_v2"?`, from the names that begin with it, else from those that
/// a slip or two leads to, or what there is when nothing comes near.
std::string did_you_mean(std::string_view given, std::span<const std::string_view> known);

/// The few names that `given` may stand for, as did_you_mean takes them; none where nothing comes near.
std::vector<std::string_view> near_names(std::string_view given, std::span<const std::string_view> known);

/// "a, b, c", and after the twelfth ", ... (79 in all)".
std::string first_names(std::span<const std::string_view> names);

/// Somebody else's text in quotes, fit for an error message: control characters and broken UTF-8 as \xNN, a long text
/// cut short.
std::string in_quotes(std::string_view text);

}  // namespace hbmscope
