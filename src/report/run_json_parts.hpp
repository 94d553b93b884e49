#pragma once
#include <cmath>
#include <string>

#include "core/json_text.hpp"
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

/// What `write` writes between an object's braces, as that object. So a result has one writer, whether it becomes a
/// tree or, in a row of a sweep, text alone.
template <class Write>
Json object_of(Write write) {
  std::string text;
  JsonText to(text);
  to.begin_object();
  write(to);
  to.end_object();
  return Json::parse(text);
}

/// The text, or null for none.
inline void text_or_null(JsonText& to, std::string_view key, std::string_view text) {
  to.key(key);
  if (text.empty()) {
    to.value(nullptr);
  } else {
    to.value(text);
  }
}

template <class T>
void add_status(JsonText& to, const Known<T>& known) {
  to.member("status", name(known.status));
  text_or_null(to, "reason", known.reason);
}

template <class T>
void add_status(Json& to, const Known<T>& known) {
  to["status"] = name(known.status);
  to["reason"] = known.reason.empty() ? Json(nullptr) : Json(known.reason);
}

/// The reason that stands beside a value: null where the value is there.
inline void because(JsonText& to, std::string_view key, bool known, std::string_view reason) {
  text_or_null(to, key, known ? std::string_view() : reason);
}

/// What is missing because something larger is.
template <class T, class U>
Known<T> unknown(const Known<U>& because) {
  return Known<T>::missing(because.status, because.reason);
}

void write_clocks(JsonText& to, const ClockState& clocks);
Json clocks_json(const ClockState& clocks);
Json hw_json(const HwStage& hw);
Json resources_json(const Known<kernels::KernelResources>& known);
Json counters_json(const Known<CounterCheck>& check);
/// The device, its counters' check, and every pipeline that ran, peers too.
Json device_json(const RunResult& result);

/// The members of `shape`.
void write_shape(JsonText& to, const RunResult& result);
/// One algorithm as a row of a sweep has it: plan, sums of traffic, FLOPs, memory, roofline and time.
void write_algorithm_row(JsonText& to, const AlgorithmResult& algorithm);

/// One algorithm: its plan, traffic, stages, FLOPs, memory, roofline, time and exactness.
Json algorithm_json(const RunResult& result, const AlgorithmResult& algorithm);

}  // namespace hbmscope::run_json
