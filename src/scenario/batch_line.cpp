#include "scenario/batch_line.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/dtype.hpp"
#include "core/suggest.hpp"
#include "scenario/fields.hpp"
#include "scenario/json_reader.hpp"

namespace hbmscope {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// A value and its text: each table is read in both directions.
template <class T>
struct Named {
  std::string_view name;
  T value;
};

constexpr std::array<Named<PlanKey>, 16> kPlanKeys{{{"block_q", PlanKey::block_q},
                                                    {"block_kv", PlanKey::block_kv},
                                                    {"variant", PlanKey::variant},
                                                    {"pack_gqa", PlanKey::pack_gqa},
                                                    {"cluster", PlanKey::cluster},
                                                    {"num_kv_splits", PlanKey::num_kv_splits},
                                                    {"atomics", PlanKey::atomics},
                                                    {"gemm_tile", PlanKey::gemm_tile},
                                                    {"softmax_reads", PlanKey::softmax_reads},
                                                    {"scale_pass", PlanKey::scale_pass},
                                                    {"mask_pass", PlanKey::mask_pass},
                                                    {"dropout", PlanKey::dropout},
                                                    {"fp32_scores", PlanKey::fp32_scores},
                                                    {"repeat_kv", PlanKey::repeat_kv},
                                                    {"order", PlanKey::order},
                                                    {"stages", PlanKey::stages}}};
constexpr std::array<Named<FlashV1Variant>, 2> kVariants{
    {{"paper", FlashV1Variant::paper}, {"released", FlashV1Variant::released}}};
constexpr std::array<Named<Atomics>, 2> kAtomics{{{"write_only", Atomics::write_only}, {"rmw", Atomics::rmw}}};
constexpr std::array<Named<CtaOrder>, 3> kOrders{{{"ascending", CtaOrder::ascending},
                                                  {"longest_first", CtaOrder::longest_first},
                                                  {"longest_first_interleaved", CtaOrder::longest_first_interleaved}}};
constexpr std::array<Named<Alignment>, 2> kAlignments{
    {{name(Alignment::bottom_right), Alignment::bottom_right}, {name(Alignment::top_left), Alignment::top_left}}};
constexpr std::array<Named<Dtype>, kDtypes.size()> kDtypeNames{{{kDtypes[0].name, kDtypes[0].dtype},
                                                                {kDtypes[1].name, kDtypes[1].dtype},
                                                                {kDtypes[2].name, kDtypes[2].dtype},
                                                                {kDtypes[3].name, kDtypes[3].dtype}}};

template <class T, std::size_t size>
std::string_view text_of(const std::array<Named<T>, size>& table, T value) {
  return std::find_if(table.begin(), table.end(), [&](const Named<T>& row) { return row.value == value; })->name;
}

template <class T, std::size_t size>
std::optional<T> optional_choice(const Fields& fields, const char* key, const std::array<Named<T>, size>& table) {
  const json* const given = fields.find(key);
  if (given == nullptr) return std::nullopt;
  if (!given->is_string()) fields.fail(key, "must be a text, got " + describe(*given), "write it in double quotes");
  const auto& text = given->get_ref<const std::string&>();
  std::array<std::string_view, size> names;
  for (std::size_t i = 0; i < size; ++i) {
    if (table[i].name == text) return table[i].value;
    names[i] = table[i].name;
  }
  fields.fail(key, "does not know " + in_quotes(text), did_you_mean(text, names));
}

constexpr std::int64_t kMaxTile = std::int64_t{1} << 20;

std::optional<std::array<std::int64_t, 2>> gemm_tile(const Fields& plan) {
  if (plan.find("gemm_tile") == nullptr) return std::nullopt;
  const std::vector<std::int64_t> sides = plan.optional_integers("gemm_tile", 1, kMaxTile);
  if (sides.size() != 2)
    plan.fail("gemm_tile", "must be null or [rows, columns], got " + std::to_string(sides.size()) + " numbers",
              "write [128, 128]");
  return std::array{sides[0], sides[1]};
}

void set(TilePlan& to, PlanKey key, const Fields& from) {
  const auto count = [&](const char* name, std::int64_t otherwise, std::int64_t most = kMaxTile) {
    return from.optional_integer(name, 1, most).value_or(otherwise);
  };
  switch (key) {
    case PlanKey::block_q:
      to.block_q = count("block_q", to.block_q);
      break;
    case PlanKey::block_kv:
      to.block_kv = count("block_kv", to.block_kv);
      break;
    case PlanKey::variant:
      to.variant = optional_choice(from, "variant", kVariants).value_or(to.variant);
      break;
    case PlanKey::pack_gqa:
      if (from.find("pack_gqa") != nullptr) to.pack_gqa = from.optional_bool("pack_gqa", false);
      break;
    case PlanKey::cluster:
      to.cluster = count("cluster", to.cluster, kMaxCluster);
      break;
    case PlanKey::num_kv_splits:
      to.num_kv_splits = count("num_kv_splits", to.num_kv_splits);
      break;
    case PlanKey::atomics:
      to.atomics = optional_choice(from, "atomics", kAtomics).value_or(to.atomics);
      break;
    case PlanKey::gemm_tile:
      to.gemm_tile = gemm_tile(from);
      break;
    case PlanKey::softmax_reads:
      to.softmax_reads = count("softmax_reads", to.softmax_reads, 3);
      break;
    case PlanKey::scale_pass:
      to.scale_pass = from.optional_bool("scale_pass", to.scale_pass);
      break;
    case PlanKey::mask_pass:
      to.mask_pass = from.optional_bool("mask_pass", to.mask_pass);
      break;
    case PlanKey::dropout:
      to.dropout = from.optional_bool("dropout", to.dropout);
      break;
    case PlanKey::fp32_scores:
      to.fp32_scores = from.optional_bool("fp32_scores", to.fp32_scores);
      break;
    case PlanKey::repeat_kv:
      to.repeat_kv = from.optional_bool("repeat_kv", to.repeat_kv);
      break;
    case PlanKey::order:
      to.order = optional_choice(from, "order", kOrders).value_or(to.order);
      break;
    case PlanKey::stages:
      to.stages = count("stages", to.stages);
      break;
  }
}

void write(JsonText& to, const TilePlan& plan, PlanKey key) {
  const auto chosen = [](std::int64_t block) { return block == 0 ? std::nullopt : std::optional(block); };
  switch (key) {
    case PlanKey::block_q:
      return to.value(chosen(plan.block_q));
    case PlanKey::block_kv:
      return to.value(chosen(plan.block_kv));
    case PlanKey::variant:
      return to.value(text_of(kVariants, plan.variant));
    case PlanKey::pack_gqa:
      return to.value(plan.pack_gqa);
    case PlanKey::cluster:
      return to.value(chosen(plan.cluster));
    case PlanKey::num_kv_splits:
      return to.value(plan.num_kv_splits);
    case PlanKey::atomics:
      return to.value(text_of(kAtomics, plan.atomics));
    case PlanKey::gemm_tile:
      if (!plan.gemm_tile) return to.value(nullptr);
      to.begin_list();
      for (const std::int64_t side : *plan.gemm_tile) to.value(side);
      return to.end_list();
    case PlanKey::softmax_reads:
      return to.value(plan.softmax_reads);
    case PlanKey::scale_pass:
      return to.value(plan.scale_pass);
    case PlanKey::mask_pass:
      return to.value(plan.mask_pass);
    case PlanKey::dropout:
      return to.value(plan.dropout);
    case PlanKey::fp32_scores:
      return to.value(plan.fp32_scores);
    case PlanKey::repeat_kv:
      return to.value(plan.repeat_kv);
    case PlanKey::order:
      return to.value(text_of(kOrders, plan.order));
    case PlanKey::stages:
      return to.value(plan.stages);
  }
}

Dtype read_dtype(const Fields& shape) {
  const auto dtype = optional_choice(shape, "dtype", kDtypeNames);
  const auto bytes = shape.optional_integer("element_bytes");
  if (!bytes) {
    if (!dtype) shape.fail("dtype", "is missing, and so is element_bytes", "give one of fp32, fp16, bf16 and fp8");
    return *dtype;
  }
  if (dtype) {
    if (info(*dtype).bytes != *bytes) {
      shape.fail("element_bytes",
                 "is " + std::to_string(*bytes) + ", but an element of dtype " + std::string(info(*dtype).name) +
                     " has " + std::to_string(info(*dtype).bytes),
                 "leave element_bytes out");
    }
    return *dtype;
  }
  switch (*bytes) {
    case 1:
      return Dtype::fp8;
    case 2:
      return Dtype::fp16;
    case 4:
      return Dtype::fp32;
    default:
      shape.fail("element_bytes", "must be 1, 2 or 4, got " + std::to_string(*bytes), "or leave it out and give dtype");
  }
}

/// -1 and null mean no limit.
std::optional<std::int64_t> read_window(const Fields& fields, const char* key) {
  const auto window = fields.optional_integer(key);
  return window == -1 ? std::nullopt : window;
}

Mask read_mask_members(const Fields& fields) {
  return {read_window(fields, "window_left"), read_window(fields, "window_right"),
          optional_choice(fields, "alignment", kAlignments).value_or(Alignment::bottom_right)};
}

Mask read_mask(const Fields& shape) {
  const Mask own = read_mask_members(shape);
  if (shape.find("mask") == nullptr) return own;
  const Fields nested = shape.require_object("mask");
  Mask mask = read_mask_members(nested);
  const auto kind = nested.optional_string("kind");
  if (kind == "causal" && mask.kind() == "none") mask.window_right = 0;
  if (kind && *kind != mask.kind()) {
    nested.fail("kind", "is " + in_quotes(*kind) + ", but its window makes it " + in_quotes(mask.kind()),
                "leave one of the two out");
  }
  const bool has_own = shape.find("window_left") != nullptr || shape.find("window_right") != nullptr ||
                       shape.find("alignment") != nullptr;
  if (has_own && own != mask)
    shape.fail("mask", "differs from the shape's own window and alignment", "leave one of the two out");
  return mask;
}

}  // namespace

std::string_view name(PlanKey key) {
  return text_of(kPlanKeys, key);
}

TilePlan plan_from_json(const json& plan, std::string_view source_name, const std::string& pointer) {
  const Fields fields(plan, source_name, pointer);
  TilePlan read;
  for (const auto& member : plan.get_ref<const json::object_t&>()) {
    const std::string& given = member.first;
    const auto known =
        std::find_if(kPlanKeys.begin(), kPlanKeys.end(), [&](const auto& row) { return row.name == given; });
    if (known == kPlanKeys.end()) {
      std::array<std::string_view, kPlanKeys.size()> names;
      std::transform(kPlanKeys.begin(), kPlanKeys.end(), names.begin(), [](const auto& row) { return row.name; });
      fields.fail(given, "is not a key of a plan", did_you_mean(given, names));
    }
    set(read, known->value, fields);
  }
  return read;
}

void write_plan(JsonText& to, const TilePlan& plan, std::span<const PlanKey> keys) {
  to.begin_object();
  for (const PlanKey key : keys) {
    to.key(name(key));
    write(to, plan, key);
  }
  to.end_object();
}

ordered_json plan_to_json(const TilePlan& plan, std::span<const PlanKey> keys) {
  std::string text;
  JsonText to(text);
  write_plan(to, plan, keys);
  return ordered_json::parse(text);
}

AttentionShape shape_from_json(const json& shape, std::string_view source_name, const std::string& pointer) {
  const Fields fields(shape, source_name, pointer);
  AttentionShape read;
  read.batch = fields.require_integer("batch");
  read.num_heads = fields.require_integer("num_heads");
  read.num_kv_heads = fields.require_integer("num_kv_heads");
  read.seqlen_q = fields.require_integer("seqlen_q");
  read.seqlen_kv = fields.require_integer("seqlen_kv");
  read.head_dim = fields.require_integer("head_dim");
  read.head_dim_v = fields.optional_integer("head_dim_v").value_or(read.head_dim);
  read.mask = read_mask(fields);
  read.dtype = read_dtype(fields);
  read.kv_lengths = fields.optional_integers("kv_lengths");
  validate(read, Speaker::key);
  return read;
}

void write_shape_members(JsonText& to, const AttentionShape& shape) {
  to.member("batch", shape.batch);
  to.member("num_heads", shape.num_heads);
  to.member("num_kv_heads", shape.num_kv_heads);
  to.member("seqlen_q", shape.seqlen_q);
  to.member("seqlen_kv", shape.seqlen_kv);
  to.member("head_dim", shape.head_dim);
  to.member("head_dim_v", shape.head_dim_v);
  to.member("dtype", info(shape.dtype).name);
  to.key("mask");
  to.begin_object();
  to.member("kind", shape.mask.kind());
  to.member("alignment", name(shape.mask.alignment));
  to.member("window_left", shape.mask.window_left);
  to.member("window_right", shape.mask.window_right);
  to.end_object();
  if (shape.kv_lengths.empty()) return;
  to.key("kv_lengths");
  to.begin_list();
  for (const std::int64_t length : shape.kv_lengths) to.value(length);
  to.end_list();
}

ordered_json shape_to_json(const AttentionShape& shape) {
  std::string text;
  JsonText to(text);
  to.begin_object();
  write_shape_members(to, shape);
  to.end_object();
  return ordered_json::parse(text);
}

BatchLine parse_batch_line(std::string_view line) {
  json document = parse_json(line, "");
  const Fields top(document, "");
  const auto algorithm = top.require_string("algorithm");
  BatchLine read{shape_from_json(top.require("shape"), "", "/shape"), algorithm, {}, {}, json::object()};
  if (top.find("plan") != nullptr) {
    read.plan = plan_from_json(top.require("plan"), "", "/plan");
    read.plan_json = std::move(document["plan"]);
  }
  read.shape_json = std::move(document["shape"]);
  return read;
}

}  // namespace hbmscope
