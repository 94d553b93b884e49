#pragma once
#include <cstdint>
#include <string>

#include "core/units.hpp"
#include "model/gpu_roofs.hpp"

/// The one place where numbers become text for people: prefixes, digits, separators. '.' is the decimal point in every
/// locale. kB, MB, GB ... are powers of 1000, KiB, MiB, GiB ... of 1024.
namespace hbmscope::text {

std::string integer(std::int64_t value);            ///< 8,192
std::string bytes(Bytes value);                     ///< 545.3 MB: powers of 1000, three or four digits
std::string binary_bytes(Bytes value);              ///< 128 MiB: powers of 1024, decimals only where there are some
std::string flop(Flop value);                       ///< 34.4 GFLOP
std::string flop_rate(FlopPerSecond value);         ///< 989.5 TFLOP/s
std::string byte_rate(BytesPerSecond value);        ///< 3.35 TB/s
std::string roof_rate(const GpuRoof& roof);         ///< 9.15 TB/s, 864.6 TFLOP/s, 4.18 T/s
std::string intensity(FlopPerByte value);           ///< 63, 4,080; decimals below 10
std::string seconds(Seconds value);                 ///< 162.8 us
std::string factor(double value);                   ///< 65.00x, 9.0e+15x: of a speed-up
std::string ratio(double value);                    ///< 65.0, 1.18, 4,096
std::string significant(double value, int digits);  ///< plain decimal, no exponent below 10^15
std::string count(double value);                    ///< 68.2 M
std::string scientific(double value);               ///< 3.2e-04
std::string percent(double fraction);               ///< 98.4 %

}  // namespace hbmscope::text
