#include "cli/options_without_effect.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "model/algorithm.hpp"

namespace hbmscope {
namespace {

struct OfPlan {
  const char* option;
  PlanKey key;
};
constexpr OfPlan kOfPlan[]{{"--block-q", PlanKey::block_q},       {"--block-kv", PlanKey::block_kv},
                           {"--gemm-tile", PlanKey::gemm_tile},   {"--softmax-reads", PlanKey::softmax_reads},
                           {"--scale-pass", PlanKey::scale_pass}, {"--mask-pass", PlanKey::mask_pass},
                           {"--dropout", PlanKey::dropout},       {"--fp32-scores", PlanKey::fp32_scores},
                           {"--repeat-kv", PlanKey::repeat_kv},   {"--variant", PlanKey::variant},
                           {"--atomics", PlanKey::atomics},       {"--pack-gqa", PlanKey::pack_gqa},
                           {"--no-pack-gqa", PlanKey::pack_gqa},  {"--cluster", PlanKey::cluster},
                           {"--stages", PlanKey::stages},         {"--kv-splits", PlanKey::num_kv_splits}};
/// What only kernels read, and what only they and the CPU's numerics do.
constexpr const char* kOfKernels[]{"--repeats", "--kernel-counters", "--hw-counters", "--rungs"};
constexpr const char* kOfNumbers[]{"--seed", "--portable"};

bool is_given(const CLI::App& command, const char* name) {
  const CLI::Option* const option = command.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

void check_lengths(const CLI::App& command, const RunRequest& request) {
  const bool decode = request.pass == "decode";  // of one query unless --seqlen-q says otherwise
  if (!is_given(command, "--seqlen") || !is_given(command, "--seqlen-kv")) return;
  if (!decode && !is_given(command, "--seqlen-q")) return;
  throw Error(
      ErrorKind::usage,
      std::string("--seqlen: has no effect beside --seqlen-kv and ") + (decode ? "--pass decode" : "--seqlen-q"),
      "leave it out: it gives the lengths that neither of them does");
}

void check_plan(const CLI::App& command, const RunRequest& request) {
  const std::vector<std::string> chosen =
      request.algorithms.empty() ? default_algorithms(request.pass) : request.algorithms;
  const auto uses = [](const Algorithm& a, PlanKey key) {
    return std::find(a.plan_keys.begin(), a.plan_keys.end(), key) != a.plan_keys.end();
  };
  for (const auto& [option, key] : kOfPlan) {
    if (!is_given(command, option)) continue;
    const PlanKey wanted = key;
    if (std::any_of(chosen.begin(), chosen.end(), [&](const auto& name) { return uses(algorithm(name), wanted); }))
      continue;
    std::vector<std::string_view> users;
    for (const Algorithm& a : algorithms()) {
      if (uses(a, key)) users.push_back(a.name);
    }
    throw Error(ErrorKind::usage,
                std::string(option) + ": has no effect on " +
                    joined(std::vector<std::string_view>(chosen.begin(), chosen.end())),
                "leave it out, or add an algorithm that takes it to --algorithm: " + joined(users));
  }
}

void check_rungs(const CLI::App& command, const RunRequest& request) {
  const auto& chosen = request.algorithms;
  if (!is_given(command, "--rungs") || std::find(chosen.begin(), chosen.end(), "flash_v3") != chosen.end()) return;
  throw Error(ErrorKind::usage, "--rungs: has no effect without flash_v3",
              "leave it out, or take --algorithm naive,flash_v2,flash_v3");
}

void refuse(const CLI::App& command, const char* option, const char* engines) {
  if (!is_given(command, option)) return;
  throw Error(ErrorKind::usage, std::string(option) + ": has no effect with this --engine",
              std::string("leave it out, or take --engine ") + engines);
}

}  // namespace

void refuse_options_without_effect(const CLI::App& command, const RunRequest& request) {
  check_lengths(command, request);
  check_plan(command, request);
  check_rungs(command, request);
  const bool kernels = request.engine == Engine::gpu || request.engine == Engine::automatic;
  if (kernels) return;
  for (const char* option : kOfKernels) refuse(command, option, "gpu or auto");
  if (request.engine == Engine::cpu) return;
  for (const char* option : kOfNumbers) refuse(command, option, "cpu, gpu or auto");
  if (request.engine == Engine::sim) return;
  refuse(command, "--l2-state", "sim, cpu, gpu or auto");  // --l2 stays: a note says whether S and P fit it
}

}  // namespace hbmscope
