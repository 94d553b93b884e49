#pragma once
#include <string>
#include <string_view>

/// Numbers along an axis: as short as they can be. Their prefixes are picked in format.cpp, as all are.
namespace hbmscope::text {

std::string tick(double value, std::string_view unit);  ///< 1 MB, 2.5 GB, 500 TFLOP/s, 0.01: powers of 1000
std::string length_tick(double value);                  ///< 512, 8k, 1M: powers of 1024, as the command line takes them
std::string binary_tick(double bytes);                  ///< 16 KiB, 227 KiB, 4 MiB

}  // namespace hbmscope::text
