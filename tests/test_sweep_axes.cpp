// Lists and ranges, the order of points, and how shards divide them.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "sweep/axis.hpp"
#include "sweep/in_order.hpp"
#include "sweep/shard.hpp"

using namespace hbmscope;

namespace {

using Words = std::vector<std::string>;

Words values(AxisKind kind, const Words& texts, std::int64_t most = 1000) {
  Words words;
  for (const AxisValue& value : parse_axis("--option", kind, texts, most).values) words.push_back(value.text);
  return words;
}

Words lengths(const char* text) {
  return values(AxisKind::lengths, {text});
}

/// What an Error says; empty where there is none.
template <class Call>
std::string complaint(Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK_FALSE(error.hint().empty());
    return error.what();
  }
  return "";
}

std::string refused(AxisKind kind, const Words& texts, std::int64_t most = 1000) {
  return complaint([&] { values(kind, texts, most); });
}

using Variables = std::map<std::string, std::string>;

SlurmShard slurm(const Variables& variables) {
  return shard_of_slurm([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Variables array_task(int id, int count, int first, int last) {
  return {{"SLURM_ARRAY_TASK_ID", std::to_string(id)},
          {"SLURM_ARRAY_TASK_COUNT", std::to_string(count)},
          {"SLURM_ARRAY_TASK_MIN", std::to_string(first)},
          {"SLURM_ARRAY_TASK_MAX", std::to_string(last)}};
}

}  // namespace

TEST_CASE("ranges grow by a factor or by a step, up to their end and not beyond") {
  CHECK(lengths("1k:64k:x2") == Words{"1024", "2048", "4096", "8192", "16384", "32768", "65536"});
  CHECK(lengths("64:256:64") == Words{"64", "128", "192", "256"});
  CHECK(lengths("64:255:64") == Words{"64", "128", "192"});
  CHECK(lengths("1:1000:x10") == Words{"1", "10", "100", "1000"});
  CHECK(lengths("3:100:x5") == Words{"3", "15", "75"});
  CHECK(lengths("7:7:1") == Words{"7"});
  CHECK(lengths("1k:2k:1k,5,8k:32k:x4") == Words{"1024", "2048", "5", "8192", "32768"});
  CHECK(lengths("0:2:1") == Words{"0", "1", "2"});
  CHECK(values(AxisKind::bytes, {"64KiB:256KiB:64KiB", "1MB"}) ==
        Words{"65536", "131072", "196608", "262144", "1000000"});
  CHECK(values(AxisKind::capacity, {"none,1MiB:4MiB:x2"}) == Words{"none", "1048576", "2097152", "4194304"});
  CHECK(values(AxisKind::windows, {"63:255:x2", "-1", "31,0"}) == Words{"63", "126", "252", "-1", "31,0"});
  CHECK(values(AxisKind::lists, {"128,256", "64,64"}) == Words{"128,256", "64,64"});
  CHECK(values(AxisKind::words, {"fp16,bf16", "fp8"}) == Words{"fp16", "bf16", "fp8"});
  CHECK(values(AxisKind::words, {"C:a.json"}) == Words{"C:a.json"});
  CHECK(values(AxisKind::switches, {"off,on"}) == Words{"off", "on"});
  CHECK(values(AxisKind::switches, {""}) == Words{"on"});
}

TEST_CASE("a range whose next number would not fit 64 bits ends before it") {
  const std::string most = std::to_string(std::numeric_limits<std::int64_t>::max());
  CHECK(lengths(("9223372036854775806:" + most + ":1").c_str()).size() == 2);
  CHECK(lengths(("1:" + most + ":x1000000007").c_str()) == Words{"1", "1000000007", "1000000014000000049"});
}

TEST_CASE("numbers are written in plain digits, and know that they are numbers") {
  const Axis axis = parse_axis("--head-dim", AxisKind::counts, {"1k,0064"}, 10);
  CHECK(axis.name() == "head_dim");
  REQUIRE(axis.values.size() == 2);
  CHECK(axis.values[0].text == "1024");
  CHECK(axis.values[1].text == "64");
  CHECK(axis.values[0].type == AxisValue::Type::number);
  CHECK(parse_axis("--dtype", AxisKind::words, {"fp16"}, 10).values[0].type == AxisValue::Type::text);
  CHECK(parse_axis("--causal", AxisKind::switches, {"on"}, 10).values[0].type == AxisValue::Type::truth);
}

TEST_CASE("what is no list and no range is refused with the option's name") {
  for (const char* text :
       {"64k:1k:x2", "1k:64k",   "1k:64k:", "1k:64k:x1", "1k:64k:x0", "1k:64k:x-2", "1k:64k:x1.5", "1k:64k:0",
        "0:64k:x2",  "1:2:3:4",  ":",       "::",        "1,,2",      ",1",         "1,",          "1k:64k:xx2",
        "8192,8k",   "1:8:x2,4", "a",       "1:b:2",     "-1",        "1.5"}) {
    CAPTURE(text);
    CHECK(refused(AxisKind::lengths, {text}).starts_with("--option"));
  }
  CHECK(refused(AxisKind::switches, {"yes"}).starts_with("--option"));
  CHECK(refused(AxisKind::switches, {"", ""}).starts_with("--option"));
  CHECK(refused(AxisKind::reals, {"0.1:0.5:0.1"}).starts_with("--option"));
  CHECK(refused(AxisKind::reals, {"0.1,1e-1"}).starts_with("--option"));
  CHECK(refused(AxisKind::words, {"fp16,fp16"}).starts_with("--option"));
  CHECK(refused(AxisKind::lengths, {"1:1000000000000:1"}).find("more than 1,000 values") != std::string::npos);
  CHECK(refused(AxisKind::lengths, {"1:1000000000000:1"}, std::int64_t{1} << 62).find("more than 1,000,000 values") !=
        std::string::npos);
  CHECK(refused(AxisKind::lengths, {"1:1000:1"}).empty());
  CHECK_FALSE(refused(AxisKind::lengths, {"1:1001:1"}).empty());
}

TEST_CASE("the last axis changes fastest, and every combination is there once") {
  const Grid grid({parse_axis("--a", AxisKind::counts, {"1,2,3"}, 9), parse_axis("--b", AxisKind::words, {"x,y"}, 9),
                   parse_axis("--c", AxisKind::counts, {"5,6"}, 9)},
                  12);
  REQUIRE(grid.points() == 12);
  std::int64_t index = 0;
  for (const char* a : {"1", "2", "3"}) {
    for (const char* b : {"x", "y"}) {
      for (const char* c : {"5", "6"}) {
        CHECK(grid.at(index, 0).text == a);
        CHECK(grid.at(index, 1).text == b);
        CHECK(grid.at(index, 2).text == c);
        ++index;
      }
    }
  }
  CHECK(grid.product() == "--a (3) x --b (2) x --c (2)");
  CHECK(Grid({}, 1).points() == 1);
}

TEST_CASE("more points than are allowed are refused with the product, however large it is") {
  std::vector<Axis> axes(2, parse_axis("--n", AxisKind::counts, {"1:100:1"}, 1000));
  CHECK(complaint([&] { Grid(axes, 10'000); }).empty());
  CHECK(complaint([&] { Grid(axes, 9'999); }).find("--n (100) x --n (100) = 10,000 points, more than the 9,999") !=
        std::string::npos);
  axes.assign(20, axes[0]);  // 10^40
  CHECK(complaint([&] { Grid(axes, 9'999); }).find("more than 9,223,372,036,854,775,807") != std::string::npos);
}

TEST_CASE("shards share out the points: each goes to one, and none has more than one above another") {
  for (const std::int64_t all : {0, 1, 5, 12, 13, 100}) {
    for (const std::int64_t of : {1, 2, 3, 7, 12, 200}) {
      std::set<std::int64_t> seen;
      std::int64_t least = all, most = 0;
      for (std::int64_t number = 1; number <= of; ++number) {
        const Shard shard{number, of};
        least = std::min(least, shard.points(all));
        most = std::max(most, shard.points(all));
        for (std::int64_t k = 0; k < shard.points(all); ++k) {
          CHECK(shard.index(k) % of == number - 1);
          CHECK(shard.index(k) < all);
          CHECK(seen.insert(shard.index(k)).second);
        }
      }
      CHECK(static_cast<std::int64_t>(seen.size()) == all);
      CHECK(most - least <= 1);
    }
  }
}

TEST_CASE("--shard takes I/N, counted from 1") {
  CHECK(parse_shard("3/8").number == 3);
  CHECK(parse_shard("3/8").of == 8);
  for (const char* text : {"0/8", "9/8", "3", "3/", "/8", "a/8", "3/8/1", "-1/8", "1/0", "1/-1", "1/1000001", " 3/8"}) {
    CAPTURE(text);
    CHECK_FALSE(complaint([&] { parse_shard(text); }).empty());
  }
}

TEST_CASE("a task of a Slurm array takes its part, however the array is numbered") {
  struct Case {
    int count, first, last;
  };
  for (const Case c : {Case{8, 1, 8}, Case{8, 0, 7}, Case{6, 0, 20}, Case{3, 5, 25}, Case{1, 4, 4}}) {
    const int step = c.count == 1 ? 1 : (c.last - c.first) / (c.count - 1);
    int number = 1;
    for (int id = c.first; id <= c.last; id += step, ++number) {
      CAPTURE(id);
      const SlurmShard taken = slurm(array_task(id, c.count, c.first, c.last));
      CHECK(taken.shard.number == number);
      CHECK(taken.shard.of == c.count);
      CHECK(taken.words.find("SLURM_ARRAY_TASK_ID=" + std::to_string(id)) != std::string::npos);
    }
    CHECK(number == c.count + 1);
  }
}

TEST_CASE("a process of a Slurm step takes its part; a batch script is one process, whatever --ntasks says") {
  Variables step{{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "2"}};
  CHECK(slurm(step).shard.number == 3);
  CHECK(slurm(step).shard.of == 4);
  // What sbatch --ntasks=4 sets for the script itself.
  const SlurmShard script = slurm({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}});
  CHECK(script.shard.of == 1);
  CHECK(script.words.empty());
  CHECK(slurm({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}).words.empty());
  CHECK(slurm({}).shard.of == 1);
  // Both together: task 2 of 3, process 2 of 4 is part 7 of 12.
  Variables both = array_task(1, 3, 0, 2);
  both.insert({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}});
  CHECK(slurm(both).shard.number == 7);
  CHECK(slurm(both).shard.of == 12);
}

TEST_CASE("variables of Slurm that do not fit together are refused") {
  const auto says = [](const Variables& variables) { return complaint([&] { slurm(variables); }); };
  CHECK(says({{"SLURM_ARRAY_TASK_ID", "3"}}).find("SLURM_ARRAY_TASK_COUNT") != std::string::npos);
  CHECK(says(array_task(3, 3, 1, 7)).find("not evenly spaced") != std::string::npos);  // --array=1,3,7
  CHECK_FALSE(says(array_task(9, 8, 1, 8)).empty());
  CHECK_FALSE(says(array_task(1, 0, 1, 8)).empty());
  CHECK_FALSE(says(array_task(1, 9, 1, 8)).empty());
  CHECK_FALSE(says({{"SLURM_ARRAY_TASK_ID", "x"}}).empty());
  CHECK_FALSE(says({{"SLURM_STEP_NUM_TASKS", "4"}}).empty());
  CHECK_FALSE(says({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "4"}}).empty());
  CHECK_FALSE(says({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "-1"}}).empty());
}

TEST_CASE("results come in order, whichever thread is first, and an error ends the work") {
  for (const int jobs : {1, 2, 7}) {
    std::string taken;
    make_in_order(
        100, jobs,
        [](std::int64_t n) {
          return Rows{std::to_string(n) + ",", 1, 0, ""};
        },
        [&](const Rows& rows) { taken += rows.text; });
    std::string wanted;
    for (int n = 0; n < 100; ++n) wanted += std::to_string(n) + ",";
    CHECK(taken == wanted);
    const auto fails_at_50 = [](std::int64_t n) {
      if (n == 50) throw Error(ErrorKind::usage, "fifty", "hint");
      return Rows{};
    };
    CHECK(complaint([&] { make_in_order(100, jobs, fails_at_50, [](const Rows&) {}); }) == "fifty");
    std::int64_t before = 0;
    const auto full_disk = [&](const Rows&) {
      if (++before == 30) throw Error(ErrorKind::usage, "full", "hint");
    };
    CHECK(complaint([&] {
            make_in_order(
                100, jobs, [](std::int64_t) { return Rows{}; }, full_disk);
          }) == "full");
    CHECK(before == 30);
  }
  make_in_order(
      0, 2, [](std::int64_t) { return Rows{}; }, [](const Rows&) { FAIL("there is nothing to take"); });
}
