#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hbmscope {

/// The part of a sweep that one process computes: of `of` parts, number `number`, counted from 1, has the points whose
/// index leaves number - 1 when divided by `of`. So neighbours, which take about as long, go to different shards.
struct Shard {
  std::int64_t number = 1;
  std::int64_t of = 1;
  [[nodiscard]] std::int64_t points(std::int64_t all) const;                              ///< how many of them it has
  [[nodiscard]] std::int64_t index(std::int64_t k) const { return number - 1 + k * of; }  ///< of its k-th point
};

/// Reads "3/8". Errors (kind usage) name --shard.
Shard parse_shard(std::string_view text);

/// The value of a variable of the environment, or nothing.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// What a job of Slurm says of itself.
struct SlurmShard {
  Shard shard;
  std::string words;  ///< "task 3 of 8 of this Slurm array (SLURM_ARRAY_TASK_ID=2)"; empty outside of both
};

/// The shard of this task of a Slurm array (sbatch --array), of this process of a step of several tasks (srun
/// --ntasks), or of both together. Numbers of an array may begin anywhere and be evenly spaced. A batch script itself
/// is no step, whatever --ntasks says, so it is never taken for one of several. Throws an Error (kind usage) for
/// variables that do not fit together.
SlurmShard shard_of_slurm(const Environment& environment);

}  // namespace hbmscope
