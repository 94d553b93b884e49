#pragma once
#include <cstdint>
#include <string>

namespace hbmscope {

/// Whether a name may stand for a pipe: `<(zcat shapes.gz)` in a shell, or a named pipe.
enum class Pipes : std::uint8_t { refused, taken };

/// Opens a file for reading and returns its descriptor, which blocks if it is a pipe. Never waits for a device, a
/// terminal or a pipe that nobody writes to: what is named must be a regular file, or where `pipes` says so a pipe with
/// a writer (who has two seconds to come). Anything else is an Error (kind data) that names `path`.
int open_input(const std::string& path, Pipes pipes);

}  // namespace hbmscope
