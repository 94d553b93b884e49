// Holds the header of every kernel file that defines a pipeline, or some of its stages, against the model: what it says
// it reads, writes, keeps on chip and computes, by tensor and stage, on random shapes.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <regex>
#include <sstream>
#include <vector>

#include "formula.hpp"
#include "kernel_header.hpp"
#include "kernel_subjects.hpp"
#include "model/algorithm.hpp"
#include "model/plan_choice.hpp"
#include "random_shapes.hpp"

namespace fs = std::filesystem;
using namespace hbmscope;
using hbmscope::testing::Contract;
using hbmscope::testing::contracts_of;
using hbmscope::testing::describe;
using hbmscope::testing::Draw;
using hbmscope::testing::Entry;
using hbmscope::testing::flash_v3_case;
using hbmscope::testing::Formula;
using hbmscope::testing::kContractLabels;
using hbmscope::testing::kernel_subjects;
using hbmscope::testing::KernelCase;
using hbmscope::testing::KernelSubject;
using hbmscope::testing::Names;

namespace {

AttentionShape unmasked_shape(Draw& draw, Dtype dtype) {
  AttentionShape s;
  s.batch = draw.between(1, 3);
  s.num_kv_heads = draw.between(1, 3);
  s.num_heads = s.num_kv_heads * draw.one_of<std::int64_t>({1, 1, 2, 5});
  s.seqlen_q = draw.one_of<std::int64_t>({1, 64, draw.between(1, 700), draw.between(1, 700)});
  s.seqlen_kv = draw.one_of<std::int64_t>({1, s.seqlen_q, 128 * draw.between(1, 5), draw.between(1, 700)});
  s.head_dim = draw.one_of<std::int64_t>({64, 128, 256, 8 * draw.between(1, 32)});
  s.head_dim_v = draw.coin() ? s.head_dim : draw.one_of<std::int64_t>({64, 192, 8 * draw.between(1, 32)});
  s.dtype = dtype;
  return s;
}

/// What is wrong with the contracts of one file: "FILE:LINE: reason", each line at most once.
class Reader {
 public:
  Reader(std::string file, std::string source, int shapes = hbmscope::testing::cases(200))
      : file_(std::move(file)), source_(std::move(source)), shapes_(shapes) {}

  std::vector<std::string> complaints() {
    std::smatch found;
    const std::regex defined("\\bPipeline kPipeline_(\\w+)\\{|^HBMSCOPE_FLASH_V3_RUNG\\((\\w), ",
                             std::regex::multiline);
    const bool whole = std::regex_search(source_, found, defined);
    const std::string name = !whole             ? fs::path(file_).stem().string()
                             : found[1].matched ? found[1].str()
                                                : "flash_v3" + found[2].str();
    const auto subject = std::find_if(kernel_subjects().begin(), kernel_subjects().end(),
                                      [&](const KernelSubject& s) { return s.pipeline == name; });
    if (subject == kernel_subjects().end()) {
      if (!whole) return {};
      complain(1, "tests/test_kernel_contracts.cpp does not know the tiles of pipeline " + name);
      return complaints_;
    }
    std::istringstream text(source_);
    for (const Contract& contract : contracts_of(text)) {
      bool complete = true;
      for (const std::string_view label : kContractLabels) {
        const auto line = contract.lines.find(label);
        if (line != contract.lines.end() && !line->second.empty()) continue;
        complain(contract.line, "the header has no line \"" + std::string(label) + ":\"");
        complete = false;
      }
      if (complete) hold(contract, *subject);
    }
    return complaints_;
  }
  [[nodiscard]] int compared() const { return compared_; }

 private:
  void complain(int line, const std::string& reason) {
    const std::string place = file_ + ":" + std::to_string(line) + ": ";
    const bool known =
        std::any_of(complaints_.begin(), complaints_.end(), [&](const std::string& c) { return c.starts_with(place); });
    if (!known) complaints_.push_back(place + reason);
  }

  void hold(const Contract& contract, const KernelSubject& subject) {
    const FlashV1Variant variant = contract.variant == "released" ? FlashV1Variant::released : FlashV1Variant::paper;
    const Algorithm& a = algorithm(subject.algorithm);
    Draw draw(20260303);
    for (int i = 0; i < shapes_; ++i) {
      const AttentionShape shape =
          unmasked_shape(draw, subject.dtypes[static_cast<std::size_t>(i) % subject.dtypes.size()]);
      try {
        const KernelCase c = subject.make_case(shape, variant, source_);
        Names names = c.tile;
        const auto pad = [](std::int64_t x) { return (x + 15) / 16 * 16; };
        names.merge(Names{{"B", shape.batch},
                          {"H", shape.num_heads},
                          {"Hkv", shape.num_kv_heads},
                          {"Nq", shape.seqlen_q},
                          {"Nk", shape.seqlen_kv},
                          {"d", shape.head_dim},
                          {"dv", shape.head_dim_v},
                          {"d16", pad(shape.head_dim)},
                          {"dv16", pad(shape.head_dim_v)},
                          {"e", shape.element_bytes()}});
        std::vector<StageTraffic> stages = a.closed_form(shape, c.plan);
        std::erase_if(stages, [&](const StageTraffic& s) {
          return !subject.stages.empty() && std::ranges::find(subject.stages, s.stage) == subject.stages.end();
        });
        hold_traffic(contract.lines.at("Reads"), "read", stages, names, c);
        hold_traffic(contract.lines.at("Writes"), "written", stages, names, c);
        if (c.smem_bytes) hold_number(contract.lines.at("On chip"), *c.smem_bytes, "the launch asks for", names, c);
        if (const auto costs = c.costs(a.flops(shape, c.plan), c)) {
          hold_number(contract.lines.at("Costs"), costs->value(), "the model counts", names, c);
        }
      } catch (const std::runtime_error& error) {
        complain(contract.line, error.what());
      }
    }
  }

  std::optional<std::int64_t> evaluate(const Entry& entry, const Names& names) {
    ++compared_;
    try {
      return Formula::value(entry.formula, names);
    } catch (const std::runtime_error& error) {
      complain(entry.line, "\"" + entry.formula + "\": " + error.what());
      return std::nullopt;
    }
  }

  void hold_number(const std::vector<Entry>& entries, std::int64_t wanted, const std::string& whose, const Names& names,
                   const KernelCase& c) {
    for (const Entry& entry : entries) {
      const auto stated = evaluate(entry, names);
      if (!stated || *stated == wanted) continue;
      complain(entry.line, "\"" + entry.formula + "\" is " + std::to_string(*stated) + ", " + whose + " " +
                               std::to_string(wanted) + " (" + describe(c.shape, c.plan) + ")");
    }
  }

  /// Each stage that the line names, tensor by tensor, or the sum over all where it names none. A tensor that moves and
  /// is not mentioned is as wrong as a false formula.
  void hold_traffic(const std::vector<Entry>& entries, const std::string& direction,
                    const std::vector<StageTraffic>& stages, const Names& names, const KernelCase& c) {
    const auto moved = [&](const std::string& stage, const TensorInfo& tensor) {
      Bytes sum;
      for (const StageTraffic& s : stages) {
        if (!stage.empty() && s.stage != stage) continue;
        const ReadWrite& bytes = s.traffic[tensor.tensor];
        sum += direction == "read" ? bytes.read : bytes.write;
      }
      return sum.value();
    };
    std::vector<std::string> groups;
    for (const Entry& entry : entries) {
      const bool known = entry.stage.empty() || std::any_of(stages.begin(), stages.end(), [&](const StageTraffic& s) {
                           return s.stage == entry.stage;
                         });
      if (!known) return complain(entry.line, "the algorithm has no stage \"" + entry.stage + "\"");
      if (entry.tensors.empty()) return complain(entry.line, "\"" + entry.formula + "\" names no tensor");
      for (const std::string& name : entry.tensors) {
        if (std::none_of(kTensors.begin(), kTensors.end(), [&](const TensorInfo& t) { return t.name == name; })) {
          return complain(entry.line, "\"" + name + "\" is no tensor");
        }
      }
      if (std::find(groups.begin(), groups.end(), entry.stage) == groups.end()) groups.push_back(entry.stage);
    }
    if (groups.front().empty()) {
      if (groups.size() > 1) return complain(entries.front().line, "\"" + entries.front().formula + "\" has no stage");
    } else {
      groups.clear();  // where one stage is named, all have to be
      for (const StageTraffic& s : stages) groups.emplace_back(s.stage);
    }
    for (const std::string& stage : groups) {
      const std::string where = stage.empty() ? "" : " in stage " + stage;
      for (const TensorInfo& tensor : kTensors) {
        std::optional<std::int64_t> stated;
        int line = entries.back().line;
        for (const Entry& entry : entries) {
          if (entry.stage != stage) continue;
          if (std::find(entry.tensors.begin(), entry.tensors.end(), tensor.name) == entry.tensors.end()) continue;
          const auto value = evaluate(entry, names);
          if (!value) return;
          if (stated) return complain(entry.line, std::string(tensor.name) + " stands twice" + where);
          stated = *value, line = entry.line;
        }
        const std::int64_t bytes = moved(stage, tensor);
        if (stated.value_or(0) == bytes) continue;
        complain(line, std::string(tensor.name) +
                           (stated ? " is stated as " + std::to_string(*stated) : " is missing") + " where " +
                           std::to_string(bytes) + " bytes are " + direction + where + " (" +
                           describe(c.shape, c.plan) + ")");
      }
    }
  }

  std::string file_, source_;
  int shapes_;
  std::vector<std::string> complaints_;
  int compared_ = 0;
};

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE(
    "the header of every kernel file that defines a pipeline or a part says what the model says, on 200 shapes each") {
  const fs::path root = HBMSCOPE_SOURCE_DIR;
  int files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "kernels")) {
    if (entry.path().extension() != ".cu") continue;
    Reader reader(fs::relative(entry.path(), root).generic_string(), text_of(entry.path()));
    for (const std::string& complaint : reader.complaints()) FAIL_CHECK(complaint);
    if (reader.compared() > 5 * hbmscope::testing::cases(200)) ++files;
  }
  CHECK(files >= 2);
}

TEST_CASE("a slip in a header is found, with its file and line") {
  const fs::path kernels = fs::path(HBMSCOPE_SOURCE_DIR) / "kernels";
  const std::string v1 = text_of(kernels / "flash_v1.cu"), v2 = text_of(kernels / "flash_v2.cu");
  const std::string v3 = text_of(kernels / "flash_v3.cu"), part = text_of(kernels / "naive_hopper.cu");
  struct Slip {
    const std::string& text;
    std::string from, to, found;
    std::string file = "x.cu";
  };
  for (const Slip& slip : std::vector<Slip>{
           {v2, "K = B*H*ceil(Nq/Br)", "K = B*Hkv*ceil(Nq/Br)", "x.cu:2: K is stated as "},
           {v2, "ceil(Nq/Br)", "Nq/Br", "x.cu:2: K is stated as "},
           {v2, "Nk*dv*e", "Nk*d*e", "x.cu:2: V is stated as "},
           {v2, "; LSE = B*H*Nq*4", "", "x.cu:3: LSE is missing where "},
           {v2, "LSE = B*H*Nq*4", "LSE = B*H*Nq*4; l = 4", "x.cu:3: l is stated as 4 where 0 "},
           {v2, "LSE = B*H*Nq*4", "lse = B*H*Nq*4", "x.cu:3: \"lse\" is no tensor"},
           {v2, "2*S*Bc*D", "S*Bc*D", "x.cu:4: \"(Br*D + S*Bc*D)*e\" is "},
           {v2, "(d16+dv16)", "(d+dv)", "x.cu:5: \"2*B*H*ceil(Nq/Br)*Br*ceil(Nk/Bc)*Bc*(d+dv)\" is "},
           {v2, "(d16+dv16)", "(dh+dv16)", "\"dh\" is no name of a size"},
           {v2, "(d16+dv16)", "(d16+dv16", "x.cu:5: \"2*B*H*ceil(Nq/Br)*Br*ceil(Nk/Bc)*Bc*(d16+dv16\": ')' is missing"},
           {v2, "// Costs:", "// Price:", "x.cu:1: the header has no line \"Costs:\""},
           {v2, "kPipeline_flash_v2{", "kPipeline_flash_v9{", "does not know the tiles of pipeline flash_v9"},
           {v1, "init: O = ", "start: O = ", "the algorithm has no stage \"start\""},
           {v1, "init: O = ", "init: O = 2*", "O is stated as "},
           {v1, "fused: O = ", "O = ", "O stands twice in stage init"},
           {v1, "Otmp = B*H*(ceil(Nk/Bc)-1)*", "Otmp = B*H*ceil(Nk/Bc)*", "Otmp is stated as "},
           {v3, " + T*ceil", " + S*ceil", "x.cu:4: \""},
           {v1, "Qb*Br", "Br", "x.cu:5: \"(Br + 2*Bc)*D*e\" is "},
           {part, "pv: P = B*H*ceil(dv/Bc)*", "pv: P = B*H*", "naive_hopper.cu:3: P is stated as ", "naive_hopper.cu"},
       }) {
    CAPTURE(slip.to);
    std::string all;
    for (const std::string& complaint : Reader(slip.file, replaced(slip.text, slip.from, slip.to), 40).complaints()) {
      all += complaint + "\n";
    }
    CAPTURE(all);
    CHECK(all.find(slip.found) != std::string::npos);
  }
}

TEST_CASE("what the model says that flash_v3 keeps on chip is what its tiles take") {
  Draw draw(31);
  for (int i = 0; i < hbmscope::testing::cases(300); ++i) {
    AttentionShape shape = unmasked_shape(draw, draw.one_of<Dtype>({Dtype::fp16, Dtype::bf16, Dtype::fp8}));
    KernelCase c = flash_v3_case(shape, {}, "");
    c.plan.stages = c.tile.at("S");
    CAPTURE(describe(shape, c.plan));
    CHECK(algorithm("flash_v3").walk(shape, c.plan).at(0).smem_bytes == *c.smem_bytes);
    const QueryTile chosen = flash_v3_tile(shape);
    if (shape.dtype == Dtype::fp8)
      CHECK(std::pair(chosen.block_q, chosen.block_kv) == std::pair(c.plan.block_q, c.plan.block_kv));
  }
}
