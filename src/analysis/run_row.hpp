#pragma once
#include "analysis/run.hpp"

namespace hbmscope {

/// The device that a run of this engine uses: none where it stays on the CPU, so that what such a run says is the same
/// on every machine. Throws an Error (kind device) where Engine::gpu finds no GPU.
DeviceStatus device_for(const RunRequest& request);

/// Of run(), what a row of a sweep shows: the algorithms' traffic, FLOPs, memory, roofline and time, and the shape. The
/// papers' claims, comparisons, the whole step, exactness, warnings and notes stay empty. `device` is device_for():
/// asking for it takes longer than a closed form.
RunResult run_row(RunRequest request, const DeviceStatus& device);

/// run() on a device that is known already.
RunResult run_on(RunRequest request, const DeviceStatus& device);

}  // namespace hbmscope
