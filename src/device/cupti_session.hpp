// CUPTI's device half: one run of the Range Profiler. Private to hw_counters_cupti.cpp.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/cupti_host.hpp"

namespace hbmscope::cupti {

/// The Range Profiler between Enable and Disable. However it is left, nothing stays pushed, started or enabled.
class Session {
 public:
  explicit Session(CUcontext context) {
    HBMSCOPE_PARAMS(CUpti_RangeProfiler_Enable_Params, p);
    p.ctx = context;
    HBMSCOPE_CALL(cuptiRangeProfilerEnable, p);
    profiler_ = p.pRangeProfilerObject;
  }
  ~Session() {
    if (pushed_ || started_) cudaDeviceSynchronize();
    quietly([&] {
      if (pushed_) pop();
    });
    quietly([&] {
      if (started_) stop();
    });
    HBMSCOPE_PARAMS(CUpti_RangeProfiler_Disable_Params, p);
    p.pRangeProfilerObject = profiler_;
    HBMSCOPE_CUPTI(cuptiRangeProfilerDisable)(&p);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// `config` and `data` must neither move nor go before decode().
  void configure(const Image& config, Names metrics, std::size_t num_ranges, Image& data) {
    HBMSCOPE_PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params, size);
    size.pRangeProfilerObject = profiler_;
    size.pMetricNames = metrics.data();
    size.numMetrics = metrics.size();
    size.maxNumOfRanges = num_ranges;
    size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(num_ranges);
    HBMSCOPE_CALL(cuptiRangeProfilerGetCounterDataSize, size);
    data.assign(size.counterDataSize, 0);
    HBMSCOPE_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, image);
    image.pRangeProfilerObject = profiler_;
    image.counterDataSize = data.size();
    image.pCounterData = data.data();
    HBMSCOPE_CALL(cuptiRangeProfilerCounterDataImageInitialize, image);
    HBMSCOPE_PARAMS(CUpti_RangeProfiler_SetConfig_Params, p);
    p.pRangeProfilerObject = profiler_;
    p.configSize = config.size();
    p.pConfig = config.data();
    p.counterDataImageSize = data.size();
    p.pCounterDataImage = data.data();
    p.range = CUPTI_UserRange;
    p.replayMode = CUPTI_UserReplay;
    p.maxRangesPerPass = num_ranges;
    p.numNestingLevels = p.minNestingLevel = p.targetNestingLevel = 1;
    HBMSCOPE_CALL(cuptiRangeProfilerSetConfig, p);
  }
  void start() {
    HBMSCOPE_PARAMS(CUpti_RangeProfiler_Start_Params, p);
    p.pRangeProfilerObject = profiler_;
    HBMSCOPE_CALL(cuptiRangeProfilerStart, p);
    started_ = true;
  }
  void push(const std::string& name) {
    HBMSCOPE_PARAMS(CUpti_RangeProfiler_PushRange_Params, p);
    p.pRangeProfilerObject = profiler_;
    p.pRangeName = name.c_str();
    HBMSCOPE_CALL(cuptiRangeProfilerPushRange, p);
    pushed_ = true;
  }
  void pop() {
    pushed_ = false;
    HBMSCOPE_PARAMS(CUpti_RangeProfiler_PopRange_Params, p);
    p.pRangeProfilerObject = profiler_;
    HBMSCOPE_CALL(cuptiRangeProfilerPopRange, p);
  }
  void stop() {
    started_ = false;
    HBMSCOPE_PARAMS(CUpti_RangeProfiler_Stop_Params, p);
    p.pRangeProfilerObject = profiler_;
    HBMSCOPE_CALL(cuptiRangeProfilerStop, p);
    if (p.isAllPassSubmitted == 0) throw Refused{"CUPTI asks for a second pass of metrics planned for one"};
  }
  void decode() {
    HBMSCOPE_PARAMS(CUpti_RangeProfiler_DecodeData_Params, p);
    p.pRangeProfilerObject = profiler_;
    HBMSCOPE_CALL(cuptiRangeProfilerDecodeData, p);
    if (p.numOfRangeDropped != 0)
      throw Refused{"CUPTI dropped " + std::to_string(p.numOfRangeDropped) + " ranges: count fewer at a time"};
  }

 private:
  template <typename F>
  static void quietly(F&& clean_up) {
    try {
      clean_up();
    } catch (const Refused&) {  // the first refusal is the one to report
    }
  }
  CUpti_RangeProfiler_Object* profiler_ = nullptr;
  bool pushed_ = false;
  bool started_ = false;
};

}  // namespace hbmscope::cupti
