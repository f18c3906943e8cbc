// The algorithm of a call, and the order in which rounds start.
#include "braid/comm/transport/message_collectives.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>

#include "braid/base/errors.h"

namespace braid::comm::transport {
namespace {

constexpr int64_t kRoundBytes = 4 << 20;      // of a member's tensor
constexpr int64_t kInFlightBytes = 16 << 20;  // limit of scratch; at least one round is in flight
constexpr int64_t kKeptBytes = 256 << 10;     // smaller scratch is not worth keeping
constexpr int64_t kWholeBytes = 64 << 10;     // received by a rank: up to here, one exchange is faster than two

bool is_cut_in_chunks(CallKind kind) {
  return kind == CallKind::ReduceScatter || kind == CallKind::AllToAll || kind == CallKind::AllGather;
}

}  // namespace

MessageCollectives::MessageCollectives(std::shared_ptr<const Group> group, MatchTable& table,
                                       const OwnSumSizes& own_sums)
    : CollectiveQueue(group), table_(table), own_sums_(own_sums), nodes_(node_members(*group)) {}

MessageCollectives::~MessageCollectives() = default;

// The order of a sum depends on the call and the group's size alone, not on the members' nodes: copies of a parameter,
// which several groups sum, stay equal. Of two ranks, one exchange of everything moves as many bytes as two exchanges
// of shares.
CollectiveQueue::Cut MessageCollectives::cut(const Call& call) const {
  const int n = group()->size();
  const auto element_bytes = static_cast<int64_t>(c10::elementSize(call.type));
  const int64_t bytes = call.chunk * element_bytes;
  const int64_t most = kRoundBytes / (is_cut_in_chunks(call.kind) ? n : 1) / element_bytes;
  const int64_t capacity = std::clamp<int64_t>(call.chunk, 1, std::max<int64_t>(most, 1));
  const bool sums_all = call.kind == CallKind::AllReduce;
  if (sums_all && own_sums_.include(bytes, n) && table_.transport().has_own_sum(call)) {
    return {Algorithm::Transport, std::max<int64_t>(call.chunk, 1)};
  }
  if (bytes * (n - 1) <= kWholeBytes) return {Algorithm::Whole, capacity};
  if (nodes_ && has_two_levels(call, *nodes_)) return {Algorithm::TwoLevels, capacity};
  return {sums_all && n > 2 ? Algorithm::Shares : Algorithm::Whole, capacity};
}

void MessageCollectives::add(std::shared_ptr<Collective> collective) {
  {
    const std::scoped_lock hold(mutex_);
    if (stopped_) return;
    entries_.push_back(std::make_shared<Entry>(Entry{.collective = std::move(collective)}));
  }
  advance();
}

void MessageCollectives::start_all() {
  {
    const std::scoped_lock hold(mutex_);
    start_all_ = true;
  }
  advance();
  std::unique_lock hold(mutex_);
  advanced_.wait(hold, [this] { return !advancing_; });  // another thread may be starting rounds
}

bool MessageCollectives::idle() const {
  const std::scoped_lock hold(mutex_);
  return std::ranges::all_of(entries_, [this](const EntryPtr& entry) { return stall_of(*entry).lost >= 0; });
}

bool MessageCollectives::needed_by_peers() const {
  const std::scoped_lock hold(mutex_);
  return own_ != nullptr;
}

void MessageCollectives::stop() {
  OwnAllReduce* own = nullptr;
  {
    const std::scoped_lock hold(mutex_);
    stopped_ = true;
    own = own_.get();
  }
  if (own) own->stop();
  std::deque<EntryPtr> dropped;  // entries, rounds and this keep each other alive
  const std::scoped_lock hold(mutex_);
  for (const EntryPtr& entry : entries_) entry->rounds.clear();
  dropped.swap(entries_);
}

Stall MessageCollectives::stall(const Collective& collective) const {
  const std::scoped_lock hold(mutex_);
  if (collective.done() || entries_.empty()) {
    Stall stall{.label = collective.label()};
    if (stopped_ && !collective.done()) stall.lost = another_rank();
    return stall;
  }
  const auto lost =
      std::ranges::find_if(entries_, [this](const EntryPtr& entry) { return stall_of(*entry).lost >= 0; });
  return stall_of(lost != entries_.end() ? **lost : *entries_.front());
}

// REQUIRES: mutex_ is held.
Stall MessageCollectives::stall_of(const Entry& entry) const {
  Stall stall{.label = entry.collective->label()};
  if (stopped_) stall.lost = another_rank();
  for (const auto& [number, round] : entry.rounds) {
    if (number == 0) round->report_missing(stall);
    round->report(stall);
  }
  std::ranges::sort(stall.missing);
  stall.missing.erase(std::ranges::unique(stall.missing).begin(), stall.missing.end());
  return stall;
}

int MessageCollectives::another_rank() const {
  return group()->world_ranks[group()->rank == 0 ? group()->size() - 1 : 0];
}

// One thread at a time starts rounds, so that their messages are posted in order. It also starts the rounds that other
// threads come with meanwhile.
void MessageCollectives::advance() {
  std::unique_lock hold(mutex_);
  if (advancing_) return;
  advancing_ = true;
  while (const auto round = next_round()) {
    hold.unlock();
    round->start();
    hold.lock();
  }
  advancing_ = false;
  advanced_.notify_all();
}

// REQUIRES: mutex_ is held.
std::shared_ptr<Round> MessageCollectives::next_round() {
  if (stopped_) return nullptr;
  const auto next = std::ranges::find_if(
      entries_, [](const EntryPtr& entry) { return entry->num_started < entry->collective->num_rounds(); });
  if (next == entries_.end() || (in_flight_bytes_ >= kInFlightBytes && !start_all_)) return nullptr;
  const int tag = std::exchange(next_tag_, (next_tag_ + 1) % std::numeric_limits<int>::max());
  return make_round(*next, (*next)->num_started++, tag);
}

// REQUIRES: mutex_ is held.
std::shared_ptr<Round> MessageCollectives::make_round(const EntryPtr& entry, int64_t number, int tag) {
  const Collective& collective = *entry->collective;
  const int64_t bytes = scratch_bytes(collective);
  in_flight_bytes_ += bytes;
  const at::Tensor memory = scratch(bytes);
  auto* const begin = memory.defined() ? static_cast<std::byte*>(memory.mutable_data_ptr()) : nullptr;
  auto exchanges = collective.algorithm() == Algorithm::TwoLevels
                       ? two_level_exchanges(collective, *nodes_, number, begin)
                       : direct_exchanges(collective, collective.stretch(number), begin);
  const auto ended = [self = shared_from_this(), entry, number, memory] { self->round_done(entry, number, memory); };
  std::function<void()> done = ended;
  if (collective.by_transport()) {
    done = [self = shared_from_this(), out = collective.out(), ended] { self->sum(out, ended); };
  }
  return entry->rounds[number] =
             std::make_shared<Round>(collective, std::move(exchanges), tag, table_, std::move(done));
}

int64_t MessageCollectives::scratch_bytes(const Collective& collective) const {
  return collective.algorithm() == Algorithm::TwoLevels ? two_level_scratch_bytes(collective, *nodes_)
                                                        : direct_scratch_bytes(collective);
}

void MessageCollectives::round_done(const EntryPtr& entry, int64_t number, const at::Tensor& scratch) {
  std::unique_lock hold(mutex_);
  if (entry->rounds.erase(number) == 0) return;  // stopped
  in_flight_bytes_ -= scratch_bytes(*entry->collective);
  if (scratch.defined() && static_cast<int64_t>(scratch.nbytes()) >= kKeptBytes) scratches_.push_back(scratch);
  const bool all = ++entry->num_done == entry->collective->num_rounds();
  if (all) {
    std::erase(entries_, entry);
    entry->collective->complete();
  }
  hold.unlock();
  if (all) table_.transport().notify();
  advance();
}

// May run on a thread that moves the messages of another group, so it does not throw.
void MessageCollectives::sum(const at::Tensor& tensor, std::function<void()> done) {
  const std::scoped_lock hold(mutex_);
  if (stopped_) return;
  if (!own_) {
    own_ = table_.transport().own_all_reduce(group(), [this] {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
    });
  }
  if (!own_) {
    stopped_ = true;
    return;
  }
  own_->add(tensor, std::move(done));
}

// REQUIRES: mutex_ is held. Returns memory that was touched before if there is some: fresh pages cost as much as what
// is received into them.
at::Tensor MessageCollectives::scratch(int64_t bytes) {
  if (bytes == 0) return {};
  if (!scratches_.empty() && static_cast<int64_t>(scratches_.back().nbytes()) < bytes) scratches_.clear();
  if (scratches_.empty() || bytes < kKeptBytes) return at::empty({bytes}, at::kByte);
  at::Tensor taken = std::move(scratches_.back());
  scratches_.pop_back();
  return taken;
}

}  // namespace braid::comm::transport
