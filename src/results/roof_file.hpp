#pragma once
#include <string>
#include <vector>

#include "model/gpu_roofs.hpp"

namespace hbmscope {

/// What `gpu probe --json` wrote.
struct RoofFile {
  std::string gpu;                ///< by its driver's name: "NVIDIA H200"
  std::vector<GpuRoof> roofs;     ///< those that it could measure
  std::vector<double> sm_clocks;  ///< Hz, of each SM; none in files that were written before there were some
};

/// Throws an Error (kind data) that names the file and the member: for what is no such document, is of another major
/// schema_version, holds no roof, or a rate that no GPU has. "-" is an Error of kind usage.
RoofFile read_roofs(const std::string& path);

/// Adds a measured roof unless there is one of that name.
void add_measured_roof(std::vector<GpuRoof>& roofs, const RoofKind& kind, double rate);

/// Does the driver's name, or the name of a GPU file, mean this GPU?
bool is_same_gpu(const std::string& driver_name, const std::string& gpu_name);

}  // namespace hbmscope
