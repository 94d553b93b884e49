// CUPTI loaded at run time, and its host half: what needs no GPU. Private to hw_counters_cupti.cpp.
#pragma once
#ifdef __SANITIZE_ADDRESS__
#error "CUPTI loads libraries with RTLD_DEEPBIND, at which AddressSanitizer ends the process: leave CUPTI out"
#endif
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "device/metric_names.hpp"

namespace hbmscope::cupti {

/// Ends the counting, not the program: becomes the reason of whatever could not be counted.
struct Refused {
  std::string reason;
};

/// CUPTI, loaded when first asked for, so that the program starts where it is missing.
class Library {
 public:
  std::string reason =
      "libcupti was not found: install CUPTI of a CUDA toolkit, or set CUDA_HOME to the toolkit's folder";

  /// Whether `handle` is a CUPTI that will do; it is then the one in use.
  bool take(void* handle) {
    if (handle == nullptr) return false;
    void* const start = dlsym(handle, "cuptiRangeProfilerStart");
    if (start == nullptr) {
      reason =
          "the libcupti found here is older than CUDA 12.6 and has no range profiler: install a newer CUDA toolkit";
      return false;
    }
    handle_ = handle;
    reason.clear();
    // libcupti opens libnvperf_host.so by its bare name, for which its own folder is not searched; the loader hands it
    // the one that is already there. Where it is missing, the first call says "not initialized".
    Dl_info self{};
    if (dladdr(start, &self) != 0 && self.dli_fname != nullptr) {
      const std::string path = self.dli_fname;
      dlopen((path.substr(0, path.rfind('/') + 1) + "libnvperf_host.so").c_str(), RTLD_NOW);
    }
    return true;
  }

  template <typename Function>
  Function* symbol(const char* name) const {
    void* const found = dlsym(handle_, name);
    if (found == nullptr) throw Refused{std::string("this libcupti has no ") + name + ": install a newer CUDA toolkit"};
    return reinterpret_cast<Function*>(found);
  }

 private:
  void* handle_ = nullptr;  // never closed: the driver keeps pointers into it
};

inline std::vector<std::string> toolkit_folders() {
  std::vector<std::string> folders;
#ifdef HBMSCOPE_CUPTI_DIR
  folders.emplace_back(HBMSCOPE_CUPTI_DIR "/");
#endif
  std::vector<std::string> toolkits;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') toolkits.emplace_back(value);
  toolkits.emplace_back("/usr/local/cuda");
  for (const std::string& toolkit : toolkits)
    for (const char* below :
         {"/lib64/", "/extras/CUPTI/lib64/", "/targets/x86_64-linux/lib/", "/targets/sbsa-linux/lib/"})
      folders.push_back(toolkit + below);
  return folders;
}

inline Library load_library() {
  Library library;
  // Newest first: the structs carry their size, so a library may be newer than the headers here, but not older.
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
    if (library.take(dlopen(name, RTLD_NOW | RTLD_NOLOAD)) || library.take(dlopen(name, RTLD_NOW))) return library;
    for (const std::string& folder : toolkit_folders())
      if (library.take(dlopen((folder + name).c_str(), RTLD_NOW))) return library;
  }
  return library;
}

inline const Library& library() {
  static const Library loaded = load_library();
  if (!loaded.reason.empty()) throw Refused{loaded.reason};
  return loaded;
}

/// A function of CUPTI by its name.
#define HBMSCOPE_CUPTI(name) ::hbmscope::cupti::library().symbol<decltype(::name)>(#name)

inline std::string refusal(CUptiResult code, const char* call) {
  std::ifstream params("/proc/driver/nvidia/params");
  std::string reason = counter_refusal(code, std::string(std::istreambuf_iterator<char>(params), {}));
  if (!reason.empty()) return reason;
  const char* name = nullptr;
  HBMSCOPE_CUPTI(cuptiGetResultString)(code, &name);
  return std::string(call) + " of CUPTI answered " + std::to_string(static_cast<int>(code)) +
         (name != nullptr ? " (" + std::string(name) + ")" : "");
}

// Every struct of CUPTI starts with its size; what is not set has to be zero.
#define HBMSCOPE_PARAMS(type, variable) \
  type variable{};                      \
  variable.structSize = type##_STRUCT_SIZE

template <typename Params>
void call(CUptiResult (*function)(Params*), Params& params, const char* name) {
  if (const CUptiResult code = function(&params); code != CUPTI_SUCCESS) throw Refused{refusal(code, name)};
}
#define HBMSCOPE_CALL(name, params) ::hbmscope::cupti::call(HBMSCOPE_CUPTI(name), params, #name)

using Names = std::vector<const char*>;
using Image = std::vector<std::uint8_t>;

/// CUPTI's host half for one chip and one list of metrics. Needs no GPU.
class Host {
 public:
  Host(const std::string& chip, const Image& availability) {
    HBMSCOPE_PARAMS(CUpti_Profiler_Host_Initialize_Params, p);
    p.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    p.pChipName = chip.c_str();
    p.pCounterAvailabilityImage = availability.empty() ? nullptr : availability.data();
    HBMSCOPE_CALL(cuptiProfilerHostInitialize, p);
    object_ = p.pHostObject;
  }
  ~Host() {
    HBMSCOPE_PARAMS(CUpti_Profiler_Host_Deinitialize_Params, p);
    p.pHostObject = object_;
    HBMSCOPE_CUPTI(cuptiProfilerHostDeinitialize)(&p);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// Whether the chip has them all. One unknown name refuses the whole list, and the object is then good for nothing.
  bool add(Names names) {
    HBMSCOPE_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, p);
    p.pHostObject = object_;
    p.ppMetricNames = names.data();
    p.numMetrics = names.size();
    const CUptiResult code = HBMSCOPE_CUPTI(cuptiProfilerHostConfigAddMetrics)(&p);
    if (code == CUPTI_ERROR_INVALID_PARAMETER || code == CUPTI_ERROR_INVALID_METRIC_NAME) return false;
    if (code != CUPTI_SUCCESS) throw Refused{refusal(code, "cuptiProfilerHostConfigAddMetrics")};
    return true;
  }
  Image config() {
    HBMSCOPE_PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
    size.pHostObject = object_;
    HBMSCOPE_CALL(cuptiProfilerHostGetConfigImageSize, size);
    Image image(size.configImageSize);
    HBMSCOPE_PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, p);
    p.pHostObject = object_;
    p.configImageSize = image.size();
    p.pConfigImage = image.data();
    HBMSCOPE_CALL(cuptiProfilerHostGetConfigImage, p);
    return image;
  }
  static std::size_t passes(Image config) {
    HBMSCOPE_PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, p);
    p.configImageSize = config.size();
    p.pConfigImage = config.data();
    HBMSCOPE_CALL(cuptiProfilerHostGetNumOfPasses, p);
    return p.numOfPasses;
  }
  std::vector<double> evaluate(const Image& counter_data, std::size_t range, Names names) const {
    std::vector<double> values(names.size(), std::numeric_limits<double>::quiet_NaN());
    HBMSCOPE_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, p);
    p.pHostObject = object_;
    p.pCounterDataImage = counter_data.data();
    p.counterDataImageSize = counter_data.size();
    p.rangeIndex = range;
    p.ppMetricNames = names.data();
    p.numMetrics = names.size();
    p.pMetricValues = values.data();
    HBMSCOPE_CALL(cuptiProfilerHostEvaluateToGpuValues, p);
    return values;
  }

 private:
  CUpti_Profiler_Host_Object* object_ = nullptr;
};

}  // namespace hbmscope::cupti
