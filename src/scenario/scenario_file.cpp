#include "scenario/scenario_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "model/amdahl.hpp"
#include "scenario/batch_line.hpp"
#include "scenario/embedded.hpp"
#include "scenario/fields.hpp"
#include "scenario/json_reader.hpp"

namespace hbmscope {

using nlohmann::json;

namespace {

using Keys = std::span<const std::string_view>;

constexpr std::string_view kTopKeys[]{"name", "title", "question", "source", "runs", "expect", "answer"};
constexpr std::string_view kRunKeys[]{"name",
                                      "shape",
                                      "pass",
                                      "algorithms",
                                      "plan",
                                      "kv_splits",
                                      "gpu",
                                      "sram_bytes",
                                      "l2_bytes",
                                      "l2_state",
                                      "engine",
                                      "attention_share",
                                      "attention_speedup",
                                      "attention_time_saved"};
constexpr std::string_view kShapeKeys[]{"batch",       "num_heads",    "num_kv_heads", "seqlen_q",      "seqlen_kv",
                                        "head_dim",    "head_dim_v",   "dtype",        "element_bytes", "mask",
                                        "window_left", "window_right", "alignment",    "kv_lengths"};
constexpr std::string_view kMaskKeys[]{"kind", "alignment", "window_left", "window_right"};
constexpr std::string_view kExpectKeys[]{"run",    "path",     "over",    "equals", "near",
                                         "within", "at_least", "at_most", "because"};
constexpr std::string_view kOverKeys[]{"run", "path"};

constexpr std::array<std::string_view, 3> kEngines{"model", "sim", "cpu"};
constexpr std::array<std::string_view, 2> kL2States{"cold", "warm"};
constexpr std::array<std::string_view, 4> kPasses{"forward", "backward", "both", "decode"};
constexpr std::array<std::string_view, 4> kRules{"equals", "near", "at_least", "at_most"};

constexpr std::int64_t kMaxSplits = std::int64_t{1} << 20;
constexpr std::int64_t kMaxSram = std::int64_t{1} << 40;

/// The place of a word in its list; `otherwise` where the member is absent.
std::size_t choice(const Fields& fields, const char* key, Keys words, std::size_t otherwise) {
  const auto word = fields.optional_string(key);
  if (!word) return otherwise;
  const auto found = std::find(words.begin(), words.end(), *word);
  if (found == words.end()) fields.fail(key, "does not know " + in_quotes(*word), did_you_mean(*word, words));
  return static_cast<std::size_t>(found - words.begin());
}

/// A text that says something.
std::string words_of(const Fields& fields, const char* key) {
  std::string text = fields.require_string(key);
  if (text.empty()) fields.fail(key, "must not be empty", "write what it is in a few words");
  return text;
}

class Reader {
 public:
  Reader(const json& document, std::string_view source_name) : source_(source_name), top_(document, source_name) {}

  Scenario read() {
    top_.allow_only(kTopKeys);
    scenario_.file = std::string(source_);
    scenario_.name = words_of(top_, "name");
    scenario_.title = words_of(top_, "title");
    scenario_.question = words_of(top_, "question");
    scenario_.source = words_of(top_, "source");
    scenario_.answer = words_of(top_, "answer");
    each("runs", [&](const json& run, const std::string& at) { scenario_.runs.push_back(read_run(run, at)); });
    each("expect",
         [&](const json& one, const std::string& at) { scenario_.expect.push_back(read_expectation(one, at)); });
    return std::move(scenario_);
  }

 private:
  template <class Use>
  void each(const char* key, Use use) {
    const json& list = top_.require(key);
    if (!list.is_array()) top_.fail(key, "must be a list, got " + describe(list), "write [{...}, {...}]");
    if (list.empty())
      top_.fail(key, "needs at least one element", "hbmscope scenario show lesson-8k shows what one says");
    for (std::size_t i = 0; i < list.size(); ++i) use(list[i], "/" + std::string(key) + "/" + std::to_string(i));
  }

  AttentionShape read_shape(const Fields& run, const std::string& at) const {
    const Fields shape = run.require_object("shape");
    shape.allow_only(kShapeKeys);
    if (shape.find("mask") != nullptr) shape.require_object("mask").allow_only(kMaskKeys);
    try {
      return shape_from_json(shape.object(), source_, at + "/shape");
    } catch (const Error& error) {
      // The rules of a shape name its members only.
      const std::string_view message = error.what();
      if (!message.starts_with("/shape/")) throw;
      throw Error(ErrorKind::data, std::string(source_) + ": " + at + std::string(message), error.hint());
    }
  }

  static void read_step(const Fields& fields, ScenarioRun& run) {
    run.attention_share = fields.optional_real("attention_share");
    run.attention_speedup = fields.optional_real("attention_speedup");
    run.attention_time_saved = fields.optional_real("attention_time_saved");
    const auto& share = run.attention_share;
    const auto& speedup = run.attention_speedup;
    const auto& saved = run.attention_time_saved;
    if (share && (*share < 0 || *share > 1))
      fields.fail("attention_share", "must be between 0 and 1", "0.3 is 30 % of the step's time");
    if (speedup && !is_taken(*speedup)) fields.fail("attention_speedup", kSpeedupsTaken, "2 means twice as fast");
    if (saved && (*saved < 0 || *saved >= 1)) {
      fields.fail("attention_time_saved", "must be at least 0 and below 1",
                  "0.3 means that attention takes 30 % less time");
    }
    if (speedup && saved) {
      fields.fail("attention_time_saved", "says the same thing as attention_speedup",
                  "give one: 30 % less time is 1.43x, not 1.3x");
    }
    if (!share && (speedup || saved)) {
      fields.fail("attention_share", "is missing",
                  "a speed-up of attention says nothing of the step without attention's share of it");
    }
  }

  ScenarioRun read_run(const json& object, const std::string& at) const {
    const Fields fields(object, source_, at);
    fields.allow_only(kRunKeys);
    ScenarioRun run;
    run.name = words_of(fields, "name");
    const auto same = [&](const ScenarioRun& other) { return other.name == run.name; };
    if (std::any_of(scenario_.runs.begin(), scenario_.runs.end(), same)) {
      fields.fail("name", "is already the name of another run: " + in_quotes(run.name),
                  "expectations name runs, so each needs a name of its own");
    }
    run.shape = read_shape(fields, at);
    run.pass = std::string(kPasses[choice(fields, "pass", kPasses, 0)]);
    run.algorithms = fields.optional_strings("algorithms");
    run.plan_json = json::object();
    if (fields.find("plan") != nullptr) {
      run.plan_json = fields.require("plan");
      run.plan = plan_from_json(run.plan_json, source_, at + "/plan");
    }
    run.kv_splits = fields.optional_integer("kv_splits", 1, kMaxSplits);
    run.gpu = words_of(fields, "gpu");
    if (const auto sram = fields.optional_integer("sram_bytes", 1, kMaxSram)) run.sram = Bytes(*sram);
    if (const auto l2 = fields.optional_integer("l2_bytes", 0)) run.l2 = Bytes(*l2);
    run.l2_warm = choice(fields, "l2_state", kL2States, 0) == 1;
    run.engine = static_cast<ScenarioEngine>(choice(fields, "engine", kEngines, 1));
    if (run.engine == ScenarioEngine::model && fields.find("l2_state") != nullptr)
      fields.fail("l2_state", "has no effect with engine model", "leave it out, or take engine sim");
    read_step(fields, run);
    return run;
  }

  /// The run that the member `run` names; `otherwise` where it names none.
  [[nodiscard]] std::size_t run_index(const Fields& fields, std::size_t otherwise) const {
    std::vector<std::string_view> names;
    for (const ScenarioRun& run : scenario_.runs) names.push_back(run.name);
    return choice(fields, "run", names, otherwise);
  }

  [[nodiscard]] Expectation read_expectation(const json& object, const std::string& at) const {
    const Fields fields(object, source_, at);
    fields.allow_only(kExpectKeys);
    Expectation read;
    read.value = {run_index(fields, 0), words_of(fields, "path")};
    if (fields.find("over") != nullptr) {
      const Fields over = fields.require_object("over");
      over.allow_only(kOverKeys);
      read.over = ScenarioValue{run_index(over, read.value.run), words_of(over, "path")};
    }
    read_rule(fields, read);
    read.because = words_of(fields, "because");
    return read;
  }

  static void read_rule(const Fields& fields, Expectation& read) {
    int rules = 0;
    for (std::size_t i = 0; i < kRules.size(); ++i) {
      const json* const wanted = fields.find(std::string(kRules[i]).c_str());
      if (wanted == nullptr) continue;
      ++rules;
      read.rule = static_cast<Expectation::Rule>(i);
      read.wanted = *wanted;
    }
    if (rules != 1) {
      fields.fail("path",
                  std::string(rules == 0 ? "nothing is expected of it" : "more than one thing is expected of it"),
                  "give exactly one of equals, near, at_least and at_most; two bounds are two expectations");
    }
    const std::string rule(name(read.rule));
    const bool exact = read.rule == Expectation::Rule::equals;
    if (!read.wanted.is_number() && !(exact && (read.wanted.is_string() || read.wanted.is_boolean()))) {
      fields.fail(rule,
                  std::string(exact ? "must be a number, a text, true or false" : "must be a number") + ", got " +
                      describe(read.wanted),
                  exact ? "write the value that the result has at this path" : "write it without quotes");
    }
    const auto within = fields.optional_real("within");
    if (read.rule == Expectation::Rule::near) {
      if (!within)
        fields.fail("within", "is missing", "near needs the largest relative difference, such as 0.01 for 1 %");
      if (*within <= 0 || *within >= 1) fields.fail("within", "must be above 0 and below 1", "0.01 is 1 %");
      read.within = *within;
    } else if (within) {
      fields.fail("within", "goes with near only", "take near instead of " + rule + ", or leave within out");
    }
  }

  std::string_view source_;
  Fields top_;
  Scenario scenario_;
};

}  // namespace

std::string_view name(ScenarioEngine engine) {
  return kEngines[static_cast<std::size_t>(engine)];
}

std::string_view name(Expectation::Rule rule) {
  return kRules[static_cast<std::size_t>(rule)];
}

Scenario parse_scenario(std::string_view text, std::string_view source_name) {
  const json document = parse_json(text, source_name);
  return Reader(document, source_name).read();
}

Scenario find_scenario(std::string_view name_or_path) {
  const std::string wanted = fold_name(name_or_path);
  std::vector<std::string_view> names;
  for (const EmbeddedFile& file : embedded_scenarios()) {
    if (fold_name(file.name) == wanted) return parse_scenario(file.text, file.name);
    names.push_back(file.name);
  }
  if (name_or_path.ends_with(".json")) {
    const std::string path(name_or_path);
    return parse_scenario(read_text_file(path), path);
  }
  throw Error(ErrorKind::usage, "there is no scenario " + in_quotes(name_or_path),
              did_you_mean(name_or_path, names) + " (or give the path of a file that ends in .json)");
}

}  // namespace hbmscope
