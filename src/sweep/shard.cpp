#include "sweep/shard.hpp"

#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/suggest.hpp"

namespace hbmscope {
namespace {

constexpr std::int64_t kMostShards = 1'000'000;
constexpr const char* kHowToShard = "write --shard 3/8 for the third of eight; they count from 1";

/// The whole number in a variable; nothing where it is not set.
std::optional<std::int64_t> number_in(const Environment& environment, const char* name) {
  const std::optional<std::string> text = environment(name);
  if (!text || text->empty()) return std::nullopt;
  return parse_integer(*text, name);
}

std::int64_t required(const Environment& environment, const char* name, const char* beside) {
  const std::optional<std::int64_t> number = number_in(environment, name);
  if (number) return *number;
  throw Error(ErrorKind::usage, std::string("--shard auto: ") + beside + " is set and " + name + " is not",
              "is this a job of Slurm? --shard I/N names the part");
}

/// Which task of its array this is, from 1; one of one outside of arrays.
Shard of_array(const Environment& environment) {
  constexpr const char* kId = "SLURM_ARRAY_TASK_ID";
  const std::optional<std::int64_t> id = number_in(environment, kId);
  if (!id) return {};
  const std::int64_t count = required(environment, "SLURM_ARRAY_TASK_COUNT", kId),
                     first = required(environment, "SLURM_ARRAY_TASK_MIN", kId),
                     last = required(environment, "SLURM_ARRAY_TASK_MAX", kId);
  const std::int64_t steps = count - 1, span = last - first;
  const bool regular = count >= 1 && span >= steps && (steps == 0 ? span == 0 : span % steps == 0);
  const std::int64_t step = regular && steps > 0 ? span / steps : 1;
  if (!regular || *id < first || *id > last || (*id - first) % step != 0) {
    throw Error(ErrorKind::usage,
                "--shard auto: task " + std::to_string(*id) + " of an array of " + std::to_string(count) + " from " +
                    std::to_string(first) + " to " + std::to_string(last) + ", which are not evenly spaced",
                "number the array 1-N, or give each task its part with --shard I/N");
  }
  return {(*id - first) / step + 1, count};
}

/// Which process of its step this is, from 1. SLURM_NTASKS would not do: a batch script has it too, and is one process.
Shard of_step(const Environment& environment) {
  constexpr const char* kTasks = "SLURM_STEP_NUM_TASKS";
  const std::optional<std::int64_t> tasks = number_in(environment, kTasks);
  if (!tasks || *tasks <= 1) return {};
  const std::int64_t rank = required(environment, "SLURM_PROCID", kTasks);
  if (rank < 0 || rank >= *tasks) {
    throw Error(ErrorKind::usage,
                "--shard auto: SLURM_PROCID is " + std::to_string(rank) + ", and the step has " +
                    std::to_string(*tasks) + " tasks",
                "give each task its part with --shard I/N");
  }
  return {rank + 1, *tasks};
}

}  // namespace

std::int64_t Shard::points(std::int64_t all) const {
  return all < number ? 0 : (all - number) / of + 1;
}

Shard parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos)
    throw Error(ErrorKind::usage, "--shard: takes I/N or auto, got " + in_quotes(text), kHowToShard);
  const Shard shard{parse_integer(text.substr(0, slash), "--shard"), parse_integer(text.substr(slash + 1), "--shard")};
  if (shard.of < 1 || shard.of > kMostShards) {
    throw Error(ErrorKind::usage,
                "--shard: there are 1 to " + std::to_string(kMostShards) + " shards, not " + std::to_string(shard.of),
                kHowToShard);
  }
  if (shard.number < 1 || shard.number > shard.of) {
    throw Error(ErrorKind::usage,
                "--shard: there is no shard " + std::to_string(shard.number) + " of " + std::to_string(shard.of),
                kHowToShard);
  }
  return shard;
}

SlurmShard shard_of_slurm(const Environment& environment) {
  const Shard array = of_array(environment), step = of_step(environment);
  const auto part = [&](const Shard& shard, const char* of, const char* variable) {
    return "task " + std::to_string(shard.number) + " of " + std::to_string(shard.of) + " of this Slurm " + of + " (" +
           variable + "=" + environment(variable).value_or("") + ")";
  };
  std::string words;
  if (number_in(environment, "SLURM_ARRAY_TASK_ID")) words = part(array, "array", "SLURM_ARRAY_TASK_ID");
  if (step.of > 1) words = part(step, "step", "SLURM_PROCID") + (words.empty() ? "" : ", in " + words);
  if (array.of > kMostShards || step.of > kMostShards || array.of * step.of > kMostShards) {
    throw Error(ErrorKind::usage, "--shard auto: more than " + std::to_string(kMostShards) + " tasks",
                "give each task its part with --shard I/N");
  }
  return {{(array.number - 1) * step.of + step.number, array.of * step.of}, words};
}

}  // namespace hbmscope
