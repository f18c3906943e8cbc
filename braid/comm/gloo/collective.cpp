// How a collective is cut into rounds, and when they start.
#include "braid/comm/gloo/collective.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::comm::gloo {
namespace {

constexpr int64_t kRoundBytes = 4 << 20;   // of a member's tensor
constexpr int64_t kKeptBytes = 256 << 10;  // smaller scratch is not worth keeping
constexpr int64_t kLittleBytes = Connection::kInside;
constexpr int64_t kLittleOfTwoBytes = 1 << 20;  // up to which one exchange of two ranks is faster than Gloo's sum

bool cut_in_chunks(CallKind kind) {
  return kind == CallKind::ReduceScatter || kind == CallKind::AllToAll || kind == CallKind::AllGather;
}

// Gloo rounds sums of narrow types at each step, and its maximum is not NaN where an input is.
bool engine_sums(const Call& call) {
  const bool wide = call.type == at::kFloat || call.type == at::kDouble || call.type == at::kLong;
  return call.kind == CallKind::AllReduce && call.op == ReduceOp::Sum && wide;
}

// Of two ranks, one exchange of all takes as many bytes as two of shares.
RoundTask::Sum sum_of(const Call& call, int64_t bytes, const CollectiveQueue& line) {
  const int n = line.group()->size();
  const bool engine = line.sums() == ReductionOrder::Engine && engine_sums(call);
  if (engine && bytes * (n - 1) > (n == 2 ? kLittleOfTwoBytes : kLittleBytes)) return RoundTask::Sum::Engine;
  return n == 2 || bytes * (n - 1) <= kLittleBytes ? RoundTask::Sum::Whole : RoundTask::Sum::Shares;
}

}  // namespace

Collective::Collective(std::shared_ptr<CollectiveQueue> line, int64_t number, const Call& call)
    : line_(std::move(line)), number_(number) {
  const int64_t n = line_->group()->size();
  task_.group = line_->group();
  task_.call = call;
  task_.combine = comm::local::combine_of(call.type, call.op);
  task_.element_bytes = static_cast<int64_t>(c10::elementSize(call.type));
  task_.sum = sum_of(call, call.chunk * task_.element_bytes, *line_);
  const int64_t most = kRoundBytes / (cut_in_chunks(call.kind) ? n : 1) / task_.element_bytes;
  task_.capacity =
      task_.sum == RoundTask::Sum::Engine ? call.chunk : std::clamp<int64_t>(call.chunk, 1, std::max<int64_t>(most, 1));
  if (call.kind != CallKind::Barrier) task_.rounds = std::max<int64_t>(1, (call.chunk - 1) / task_.capacity + 1);
}

void Collective::attach(const at::Tensor& in, const at::Tensor& out) {
  task_.tensors[0] = in;
  task_.tensors[1] = out;
  if (out.defined()) task_.out = static_cast<std::byte*>(out.mutable_data_ptr());
  if (in.defined()) task_.in = static_cast<const std::byte*>(in.const_data_ptr());
}

std::string Collective::label() const {
  return cat(name_of(task_.call.kind), " #", number_, " on ", task_.group->name);
}

Stall Collective::stall() const { return line_->stall(*this); }

CollectiveQueue::CollectiveQueue(std::shared_ptr<const Group> group, Ways ways)
    : group_(std::move(group)), ways_(std::move(ways)) {}

bool CollectiveQueue::has_connections() const {
  const std::scoped_lock hold(mutex_);
  return engine_sums_ != nullptr;
}

void CollectiveQueue::add(std::shared_ptr<Collective> collective) {
  {
    const std::scoped_lock hold(mutex_);
    if (stopped_) return;
    collectives_.push_back(std::move(collective));
  }
  advance();
}

void CollectiveQueue::start_all() {
  {
    const std::scoped_lock hold(mutex_);
    start_all_ = true;
  }
  advance();
  std::unique_lock hold(mutex_);
  advanced_.wait(hold, [this] { return !advancing_; });  // another thread may be at it
}

bool CollectiveQueue::idle() const {
  const std::scoped_lock hold(mutex_);
  return std::ranges::all_of(collectives_, [this](const auto& one) { return stall_of(*one).lost >= 0; });
}

void CollectiveQueue::stop() {
  EngineAllReduce* sums = nullptr;
  {
    const std::scoped_lock hold(mutex_);
    stopped_ = true;
    sums = engine_sums_.get();
  }
  if (sums) sums->stop();
  decltype(collectives_) dropped;  // they and this keep each other alive
  const std::scoped_lock hold(mutex_);
  for (const auto& collective : collectives_) collective->rounds_.clear();  // so do a round and its collective
  dropped.swap(collectives_);
}

Stall CollectiveQueue::stall(const Collective& collective) const {
  const std::scoped_lock hold(mutex_);
  if (collective.done()) return {.label = collective.label()};
  if (collectives_.empty()) return stall_of(collective);
  const auto lost = std::ranges::find_if(collectives_, [this](const auto& one) { return stall_of(*one).lost >= 0; });
  return stall_of(lost != collectives_.end() ? **lost : *collectives_.front());
}

// Under the lock.
Stall CollectiveQueue::stall_of(const Collective& collective) const {
  Stall stall{.label = collective.label()};
  if (stopped_) stall.lost = group_->world_ranks[group_->rank == 0 ? group_->size() - 1 : 0];
  for (const auto& [number, round] : collective.rounds_) {
    if (stall.missing.empty()) stall.missing = round->missing();
    if (stall.lost < 0) stall.lost = round->lost();
  }
  std::ranges::sort(stall.missing);
  return stall;
}

// One thread at a time starts rounds, so that they are posted in order; others leave it what they would have done.
void CollectiveQueue::advance() {
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

std::shared_ptr<Round> CollectiveQueue::next_round() {
  if (stopped_) return nullptr;
  const auto next =
      std::ranges::find_if(collectives_, [](const auto& one) { return one->next_round_ < one->task_.rounds; });
  if (next == collectives_.end() || (in_flight_bytes_ >= kWindowBytes && !start_all_)) return nullptr;
  const std::shared_ptr<Collective>& collective = *next;
  const int64_t number = collective->next_round_++, bytes = collective->task_.scratch_bytes();
  in_flight_bytes_ += bytes;
  Round::Ways ways{
      ways_.post, [this](const at::Tensor& tensor, std::function<void()> done) { engine_sum(tensor, std::move(done)); },
      [self = shared_from_this(), collective, number] { self->round_done(collective, number); }, next_tag_};
  next_tag_ = (next_tag_ + 1) % std::numeric_limits<int>::max();
  return collective->rounds_[number] =
             std::make_shared<Round>(collective->task_, number, scratch(bytes), std::move(ways));
}

void CollectiveQueue::round_done(const std::shared_ptr<Collective>& collective, int64_t number) {
  std::unique_lock hold(mutex_);
  const auto found = collective->rounds_.find(number);
  if (found == collective->rounds_.end()) return;  // stopped
  const at::Tensor used = found->second->scratch();
  collective->rounds_.erase(found);
  in_flight_bytes_ -= collective->task_.scratch_bytes();
  if (used.defined() && static_cast<int64_t>(used.nbytes()) >= kKeptBytes) scratches_.push_back(used);
  const bool all = ++collective->rounds_done_ == collective->task_.rounds;
  if (all) {
    std::erase(collectives_, collective);
    for (at::Tensor& tensor : collective->task_.tensors) tensor.reset();
    collective->finish();
  }
  hold.unlock();
  if (all) ways_.news.tell();
  advance();
}

// May run on a thread of another connection, which has no part in a failure here.
void CollectiveQueue::engine_sum(const at::Tensor& tensor, std::function<void()> done) {
  try {
    const std::scoped_lock hold(mutex_);
    if (stopped_) return;
    if (!engine_sums_)
      engine_sums_ =
          std::make_unique<EngineAllReduce>(ways_.connect, [this](const std::string& why) { sums_failed(why); });
    engine_sums_->add(tensor, std::move(done));
  } catch (const RunError& error) {
    sums_failed(error.what());
  }
}

void CollectiveQueue::sums_failed(const std::string& why) {
  {
    const std::scoped_lock hold(mutex_);
    stopped_ = true;
  }
  ways_.failed(why);
}

// Memory that has been touched before: fresh pages cost as much as what is received into them.
at::Tensor CollectiveQueue::scratch(int64_t bytes) {
  if (bytes == 0) return {};
  if (!scratches_.empty() && static_cast<int64_t>(scratches_.back().nbytes()) < bytes) scratches_.clear();
  if (scratches_.empty() || bytes < kKeptBytes) return at::empty({bytes}, at::kByte);
  at::Tensor taken = std::move(scratches_.back());
  scratches_.pop_back();
  return taken;
}

}  // namespace braid::comm::gloo
