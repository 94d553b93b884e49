#pragma once
#include <cmath>
#include <string>

#include "report/run_json.hpp"

/// What the files that write a run's JSON share.
namespace hbmscope::run_json {

using Json = nlohmann::ordered_json;

/// JSON has no infinity and no NaN: null stands for them, and a reason beside it.
inline Json real(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

/// The reason that stands beside a value: null where the value is there.
inline Json because(bool known, std::string_view reason) {
  return known ? Json(nullptr) : Json(reason);
}

template <class T>
void add_status(Json& to, const Known<T>& known) {
  to["status"] = name(known.status);
  to["reason"] = known.reason.empty() ? Json(nullptr) : Json(known.reason);
}

/// What is missing because something larger is.
template <class T, class U>
Known<T> unknown(const Known<U>& because) {
  return Known<T>::missing(because.status, because.reason);
}

Json clocks_json(const ClockState& clocks);
Json hw_json(const HwStage& hw);
Json counters_json(const Known<CounterCheck>& check);
/// The device, its counters' check, and every pipeline that ran, peers too.
Json device_json(const RunResult& result);

/// One algorithm: its plan, traffic, stages, FLOPs, memory, roofline, time and exactness.
Json algorithm_json(const RunResult& result, const AlgorithmResult& algorithm);

}  // namespace hbmscope::run_json
