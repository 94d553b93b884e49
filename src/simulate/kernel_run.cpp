#include "simulate/kernel_run.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace hbmscope {
namespace {

constexpr std::int64_t kMaxSharedTraces = 1 << 16;
constexpr std::int64_t kReportEvery = 1 << 20;  ///< requests
/// Looking whether the state repeats costs a glance at every tile in L2; so many requests a tile come first.
constexpr std::int64_t kRequestsPerTileLookedAt = 8;

/// The CTA that starts as number `n`.
std::int64_t cta_at(std::int64_t n, const KernelWalk& kernel, CtaOrder order) {
  const std::int64_t tiles = kernel.tiles_per_head, heads = kernel.num_ctas / tiles;
  switch (order) {
    case CtaOrder::ascending:
      return n;
    case CtaOrder::longest_first:
      return n / tiles * tiles + (tiles - 1 - n % tiles);
    case CtaOrder::longest_first_interleaved:
      return n % heads * tiles + (tiles - 1 - n / heads);
  }
  return n;
}

}  // namespace

KernelRun::KernelRun(const KernelWalk& kernel, CtaOrder order, const L2Config& config, Pace pace, L2Cache& cache,
                     ScheduleListener* listener, std::int64_t start)
    : kernel_(kernel),
      order_(order),
      pace_(pace),
      sms_(std::max<std::int64_t>(1, config.num_sms / kernel.cluster)),
      coupled_(pace == Pace::coupled || pace == Pace::drifting),
      younger_stall_(coupled_ ? std::llround(kernel.younger_stall * static_cast<double>(kPartsPerStep)) : 0),
      cache_(cache),
      listener_(listener),
      now_(start),
      slots_(static_cast<std::size_t>(std::min(resident_units(kernel, config), kernel.num_ctas))) {
  const std::int64_t traces = kernel.tiles_per_head * kernel.passes_per_cta;
  if (kernel.heads_per_kv > 0 && kernel.num_ctas > kernel.tiles_per_head && traces <= kMaxSharedTraces) {
    shared_.assign(static_cast<std::size_t>(traces), TileTrace());
  }
  if (cache_.build().halves) {
    for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].half = i % static_cast<std::size_t>(sms_) % 2;
  }
  tile_key({Tensor::Q, kernel.num_ctas / kernel.tiles_per_head, 0});  // refuses more heads than a key holds
  if (pace == Pace::drifting && !config.sm_clocks.empty()) take_clocks(config);
  if (listener_ == nullptr && clock_stalls_.empty()) choose_period();
}

/// A step takes the fastest SM kPartsPerStep.
void KernelRun::take_clocks(const L2Config& config) {
  const std::vector<double>& clocks = config.sm_clocks;
  const double fastest = *std::max_element(clocks.begin(), clocks.end());
  for (std::int64_t sm = 0; sm < sms_; ++sm) {
    const double clock = clocks[static_cast<std::size_t>(sm * kernel_.cluster) % clocks.size()];
    clock_stalls_.push_back(std::llround((fastest / clock - 1) * static_cast<double>(kPartsPerStep)));
  }
  // When the last of that share has started, those before it are in the middle of their work.
  if (config.clocks_apart < 1) {
    clocks_apart_until_ =
        std::llround(config.clocks_apart * static_cast<double>(kernel_.num_ctas)) + std::ssize(slots_) / 2;
  }
}

void KernelRun::play(const Progress& progress) {
  if (kernel_.passes_per_cta == 1 && kernel_.tiles_per_pass == 1) return play_one_step_ctas(progress);
  std::int64_t reported = 0;
  while (true) {
    if (pace_ != Pace::lockstep || running_ == 0) {
      start_ctas();
      skip_repetitions(progress);
    }
    if (running_ == 0) return;
    if (started_ > clocks_apart_until_) clock_stalls_.clear();
    if (listener_ != nullptr) {
      listener_->time(now_++);
      for (Slot& slot : slots_) {
        if (slot.busy()) played_ += take_step<true>(slot);
      }
    } else {
      for (Slot& slot : slots_) {
        if (slot.busy()) played_ += take_step<false>(slot);
      }
    }
    if (progress && played_ - reported > kReportEvery) {
      progress(played_ - reported);
      reported = played_;
    }
  }
}

Traffic KernelRun::requested() const {
  Traffic traffic(Boundary::sm_l2);
  for (const TensorInfo& tensor : kTensors) {
    traffic.read(tensor.tensor, Bytes(read_[static_cast<std::size_t>(tensor.tensor)]));
    traffic.write(tensor.tensor, Bytes(written_[static_cast<std::size_t>(tensor.tensor)]));
  }
  return traffic;
}

/// CTAs of a single step cannot get ahead of each other: no need to take them down first.
void KernelRun::play_one_step_ctas(const Progress& progress) {
  if (listener_ != nullptr) return tell_of_one_step_ctas();
  struct Player : TileListener {
    explicit Player(KernelRun& kernel) : run(kernel) {}
    void load(const TileId& tile, Bytes bytes) override { play(tile, bytes, false, run.read_); }
    void store(const TileId& tile, Bytes bytes) override { play(tile, bytes, true, run.written_); }
    void play(const TileId& tile, Bytes bytes, bool store, L2Cache::Sums& sum) {
      sum[static_cast<std::size_t>(tile.tensor)] += bytes.value();
      const std::uint64_t key = tile_key(tile);
      run.cache_.request(key, {key, bytes.value(), tile.tensor, store}, half);
      ++run.played_;
    }
    KernelRun& run;
    unsigned half = 0;
  } player(*this);
  while (started_ < kernel_.num_ctas) {
    const std::int64_t cta = cta_at(started_++, kernel_, order_);
    player.half = half_of(cta);
    kernel_.walk_pass(cta, 0, player);
    if (progress && started_ % kReportEvery == 0) progress(kReportEvery);
    skip_repetitions(progress);
  }
}

/// The same, in waves: as many CTAs as there are places take their only step at one time.
void KernelRun::tell_of_one_step_ctas() {
  struct Collector : TileListener {
    void load(const TileId& tile, Bytes bytes) override { add(tile, bytes, false); }
    void store(const TileId& tile, Bytes bytes) override { add(tile, bytes, true); }
    void add(const TileId& tile, Bytes bytes, bool store) {
      requests.push_back({tile_key(tile), bytes.value(), tile.tensor, store});
    }
    std::vector<TileRequest> requests;
  } cta;
  for (; started_ < kernel_.num_ctas; ++started_) {
    const std::int64_t slot = started_ % std::ssize(slots_);
    if (slot == 0) listener_->time(now_++);
    cta.requests.clear();
    PlayedRequest who{};
    who.cta = cta_at(started_, kernel_, order_);
    kernel_.walk_pass(who.cta, 0, cta);
    who.count = std::ssize(cta.requests);
    for (const TileRequest& r : cta.requests) {
      (r.store ? written_ : read_)[static_cast<std::size_t>(r.tensor)] += r.bytes;
      play_and_tell(r.key, r, half_of(who.cta), slot, who);
    }
    played_ += who.count;
  }
}

/// CTAs of a single step come and go so fast that any SM may have the next one: as good as drawn, and drawn again alike
/// for the heads whose tiles are dealt alike.
unsigned KernelRun::half_of(std::int64_t cta) const {
  if (!cache_.build().halves) return 0;
  const auto alike = cta % (kernel_.tiles_per_head * cache_.build().heads_dealt_alike());
  return static_cast<unsigned>(scatter(static_cast<std::uint64_t>(alike)) >> 32 & 1);
}

bool KernelRun::play_and_tell(std::uint64_t key, const TileRequest& r, unsigned half, std::int64_t slot,
                              PlayedRequest& who) {
  const bool hit = cache_.request(key, r, half);
  who.sm = slot % sms_ * kernel_.cluster;
  who.place = slot / sms_;
  who.places = (std::ssize(slots_) - 1) / sms_ + 1;
  who.tile = tile_of(key);
  who.bytes = Bytes(r.bytes);
  who.store = r.store;
  who.through_hbm = !hit || (r.store && !cache_.takes(r.bytes));
  listener_->request(who);
  ++who.index;
  return hit;
}

void KernelRun::start_ctas() {
  for (Slot& slot : slots_) {
    if (slot.busy() || started_ == kernel_.num_ctas) continue;
    slot.cta = cta_at(started_++, kernel_, order_);
    slot.pass = -1;
    slot.stalls = 0;
    slot.older = 0;
    slot.turn = 0;
    each_beside(slot, [&](const Slot&) { ++slot.older; });
    ++running_;
    next_pass(slot);
  }
}

/// Finds the next pass that asks for anything; frees the slot after the last.
void KernelRun::next_pass(Slot& slot) {
  slot.steps = 0;
  slot.repeat = 0;
  while (++slot.pass < kernel_.passes_per_cta) {
    slot.trace = shared_.empty() ? own_trace(slot) : shared_trace(slot);
    if (slot.trace->empty()) continue;
    for (const TileTrace::Total& total : slot.trace->totals()) {
      read_[static_cast<std::size_t>(total.tensor)] += total.read;
      written_[static_cast<std::size_t>(total.tensor)] += total.write;
    }
    return;
  }
  slot.cta = -1;
  each_beside(slot, [&](Slot& other) { other.older -= other.older > slot.older ? 1 : 0; });
  --running_;
}

/// The first CTAs go to one SM each, the next ones beside them.
template <class F>
void KernelRun::each_beside(const Slot& slot, F&& f) {
  const std::int64_t mine = &slot - slots_.data(), slots = std::ssize(slots_);
  for (std::int64_t i = mine % sms_; i < slots; i += sms_) {
    Slot& other = slots_[static_cast<std::size_t>(i)];
    if (i != mine && other.busy()) f(other);
  }
}

const TileTrace* KernelRun::own_trace(Slot& slot) {
  slot.own_trace.clear();
  slot.shift = {};
  kernel_.walk_pass(slot.cta, slot.pass, slot.own_trace);
  slot.own_trace.finish();
  return &slot.own_trace;
}

/// The trace of the same tile and pass of head 0, moved to the slot's head.
const TileTrace* KernelRun::shared_trace(Slot& slot) {
  const std::int64_t tile = slot.cta % kernel_.tiles_per_head;
  slot.shift = shift_to(slot.cta / kernel_.tiles_per_head);
  TileTrace& trace = shared_[static_cast<std::size_t>(tile * kernel_.passes_per_cta + slot.pass)];
  if (trace.empty()) {
    kernel_.walk_pass(tile, slot.pass, trace);
    trace.finish();
  }
  return &trace;
}

template <bool kTold>
std::int64_t KernelRun::take_step(Slot& slot) {
  if (slot.stalls >= kPartsPerStep) {
    slot.stalls -= kPartsPerStep;
    return 0;
  }
  bool hit = true;
  [[maybe_unused]] PlayedRequest who{};
  if constexpr (kTold) who.cta = slot.cta, who.step = slot.turn++;
  const TileTrace::Steps steps = slot.trace->steps()[slot.steps];  // a copy: the next pass may take the trace's place
  if constexpr (kTold) who.count = steps.end - steps.begin;
  for (std::uint32_t i = steps.begin; i < steps.end; ++i) {
    const TileTrace::Request& r = slot.trace->request(i);
    const std::uint64_t key = r.first.key + static_cast<std::uint64_t>(slot.repeat) * r.key_stride;
    const std::uint64_t moved = slot.shift.moved(key, r.first.tensor);
    if constexpr (kTold) {
      hit = play_and_tell(moved, r.first, slot.half, &slot - slots_.data(), who) && hit;
    } else {
      hit = cache_.request(moved, r.first, slot.half) && hit;
    }
  }
  if (!hit && coupled_) slot.stalls += kMissStall;
  if (!clock_stalls_.empty()) slot.stalls += clock_stalls_[static_cast<std::size_t>((&slot - slots_.data()) % sms_)];
  slot.stalls += younger_stall_ * slot.older;
  if (++slot.repeat == steps.repeats) {
    slot.repeat = 0;
    if (++slot.steps == slot.trace->steps().size()) next_pass(slot);
  }
  return steps.end - steps.begin;
}

// ---- what repeats from head to head
// ---------------------------------------------------------------------------------- Where heads are alike, a state of
// L2 and slots that is an earlier one with every tile moved on by so many heads leads to the same bytes again, and
// again: the simulation need not be played to know its outcome.

/// So many heads fill the slots evenly and end with a kv head.
void KernelRun::choose_period() {
  if (kernel_.heads_per_kv == 0 || order_ == CtaOrder::longest_first_interleaved) return;
  const auto slots = static_cast<std::int64_t>(slots_.size());
  const bool one_step = kernel_.passes_per_cta == 1 && kernel_.tiles_per_pass == 1;
  const std::int64_t even = one_step ? 1 : slots / std::gcd(slots, kernel_.tiles_per_head);
  period_ = std::lcm(even, kernel_.heads_per_kv * cache_.build().heads_dealt_alike());
}

KernelRun::Snapshot KernelRun::snapshot() const {
  Snapshot s{started_, played_, cache_.state(), {}, {cache_.read(), cache_.written(), read_, written_}};
  for (const Slot& slot : slots_) {
    if (slot.busy()) {
      s.slots.push_back(
          {slot.cta, slot.pass, static_cast<std::int64_t>(slot.steps), slot.repeat, slot.stalls, slot.older});
    } else {
      s.slots.push_back({-1, 0, 0, 0, 0, 0});
    }
  }
  return s;
}

bool KernelRun::is_moved_on(const Snapshot& now, const Snapshot& then) const {
  const std::int64_t ctas = now.started - then.started;
  const auto moved = [&](std::array<std::int64_t, 6> a, const std::array<std::int64_t, 6>& b) {
    if (a[0] >= 0 && b[0] >= 0) a[0] -= ctas;
    return a == b;
  };
  return std::equal(now.slots.begin(), now.slots.end(), then.slots.begin(), moved) &&
         now.cache.is_moved_on_from(then.cache, shift_to(ctas / kernel_.tiles_per_head));
}

void KernelRun::skip_repetitions(const Progress& progress) {
  if (period_ == 0 || started_ == 0 || started_ % (period_ * kernel_.tiles_per_head) != 0) return;
  if (last_ && last_->started == started_) return;
  const std::int64_t total = kernel_.num_ctas;
  if (total - started_ < period_ * kernel_.tiles_per_head) {
    period_ = 0;
    return;
  }
  if (played_ - looked_at_ < kRequestsPerTileLookedAt * static_cast<std::int64_t>(cache_.tiles_held())) {
    period_ *= 2;
    return;
  }
  looked_at_ = played_;
  Snapshot now = snapshot();
  const std::int64_t ctas = last_ ? now.started - last_->started : 0;
  if (ctas == 0 || !is_moved_on(now, *last_)) {
    last_ = std::move(now);
    return;
  }
  const std::int64_t times = (total - started_) / ctas;
  L2Cache::Sums* const sums[] = {&cache_.read(), &cache_.written(), &read_, &written_};
  for (std::size_t i = 0; i < now.sums.size(); ++i) {
    for (std::size_t t = 0; t < kTensorCount; ++t) (*sums[i])[t] += times * (now.sums[i][t] - last_->sums[i][t]);
  }
  const HeadShift on = shift_to(times * ctas / kernel_.tiles_per_head);
  cache_.move_on(on);
  for (Slot& slot : slots_) {
    if (!slot.busy()) continue;
    slot.cta += times * ctas;
    slot.shift.heads += on.heads;
    slot.shift.kv_heads += on.kv_heads;
  }
  started_ += times * ctas;
  if (progress) progress(times * (now.played - last_->played));
  period_ = 0;
}

}  // namespace hbmscope
