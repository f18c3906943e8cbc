// ZeRO. Reduce-scatters are in place: the sum is in this rank's chunk of the tensor that was summed.
#include "braid/sync/zero.h"

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/sync/ring_bytes.h"
#include "braid/sync/tied_uses.h"

namespace braid::sync {
namespace {

// Returns "gradients of blocks.0.ln_1.weight ..": the first parameter stands for its unit.
comm::OpName name_of(std::string_view what, const param::ParamStore& store, size_t unit) {
  return comm::OpName(cat(what, " of ", store.first_param(static_cast<int>(unit)).name, " .."));
}

}  // namespace

UnitGatherer::UnitGatherer(param::ParamStore& store, Communicator& shards)
    : store_(store), shards_(shards), units_(static_cast<size_t>(store.num_gathered())) {
  for (size_t unit = 0; unit < units_.size(); ++unit) units_[unit].name = name_of("parameters", store, unit);
}

void UnitGatherer::start(int unit) {
  Unit& now = units_[unit];
  if (now.state != State::Free) return;
  store_.allocate_unit(unit);
  const at::Tensor& whole = store_.gathered_data(unit);
  const comm::CallName name(now.name);
  now.work = shards_.all_gather(whole, store_.own_part(unit));
  now.state = State::Gathering;
  bytes_sent_ += one_way_bytes(whole, shards_.size());
}

void UnitGatherer::free(int unit) {
  store_.free_unit(unit);
  Unit& now = units_[unit];
  now.state = State::Free;
  now.num_users = 0;
  now.work = {};
}

void UnitGatherer::prefetch(int block) {
  for (const int unit : store_.gathered_by_block(block)) start(unit);
}

void UnitGatherer::acquire(int block) {
  prefetch(block);
  for (const int unit : store_.gathered_by_block(block)) {
    Unit& now = units_[unit];
    now.work.order_before(shards_.queue());
    now.work = {};
    now.state = State::Whole;
    ++now.num_users;
  }
}

void UnitGatherer::release(int block) {
  for (const int unit : store_.gathered_by_block(block)) {
    check(units_[unit].num_users > 0, "a block that is released was acquired");
    if (--units_[unit].num_users == 0) free(unit);
  }
}

void UnitGatherer::drop() {
  for (size_t unit = 0; unit < units_.size(); ++unit) {
    if (units_[unit].state != State::Gathering) continue;
    units_[unit].work.order_before(shards_.queue());
    free(static_cast<int>(unit));
  }
}

namespace {

constexpr size_t kMostInFlight = 2;  // gradients of units in flight: one is reduced while the next is written

}  // namespace

int BlockOrder::next(int block, param::Phase phase) const {
  const int next = phase == param::Phase::Forward ? block + 1 : block - 1;
  if (next < 0 || next >= std::ssize(stage_of_block) || stage_of_block[next] != stage_of_block[block]) return -1;
  const bool runs = phase == param::Phase::Forward || runs_backward.empty() || runs_backward[next] == 1;
  return runs ? next : -1;
}

Zero::Zero(param::ParamStore& store, param::UnitSink* sink, ReplicaGroups groups, BlockOrder order)
    : store_(store), sink_(sink), groups_(groups), order_(std::move(order)) {
  check(groups.shards.size() == store.sharding().parts && groups.shards.rank() == store.sharding().part,
        "the ranks that shard a copy are the parts of the store, in order");
  check((sink != nullptr) == store.shards_gradients(), "sharded gradients come unit by unit");
  if (store.shards_parameters()) gatherer_.emplace(store, groups.shards);
  if (sink) {
    written_.resize(store.units().size());
    for (size_t unit = 0; unit < store.units().size(); ++unit) names_.push_back(name_of("gradients", store, unit));
    sink->on_unit = [this](int unit, int, const at::Tensor& gradient) { take(unit, gradient); };
  } else {
    plan_pieces();
  }
}

// Plans the pieces in the order in which backward completes them, the reverse of the store's. Other uses of tied
// parameters come last.
void Zero::plan_pieces() {
  const auto& params = store_.params();
  for (size_t u = store_.units().size(); u-- > 0;) {
    const param::ShardUnit& unit = store_.units()[u];
    for (int p = unit.first_param; p < unit.first_param + unit.num_params; ++p) {
      of_param_[params[p].name].push_back(static_cast<int>(pieces_.size()));
    }
    const int count = unit.num_params;
    pieces_.push_back({static_cast<int>(u), unit.begin, unit.end, count, count, {}, name_of("gradients", store_, u)});
  }
  for (const param::Parameter& param : params) {
    const int u = store_.unit_of(param);
    for (const param::UseGrad& use : param.use_grads) {
      const int64_t begin = use.slice.storage_offset() - store_.flat_grads().storage_offset();
      if (begin == param.offset) continue;
      of_param_[param.name].push_back(static_cast<int>(pieces_.size()));
      pieces_.push_back(
          {u, begin, begin + store_.units()[u].length(), 1, 1, {}, comm::OpName(cat("another use of ", param.name))});
    }
  }
}

void Zero::acquire(int block, param::Phase phase) {
  if (!gatherer_) return;
  gatherer_->acquire(block);
  if (const int next = order_.next(block, phase); next >= 0) gatherer_->prefetch(next);
}

void Zero::release(int block, param::Phase) {
  if (gatherer_) gatherer_->release(block);
}

at::Tensor Zero::own_part(const at::Tensor& whole) const {
  const int64_t length = whole.numel() / groups_.shards.size();
  return whole.narrow(0, groups_.shards.rank() * length, length);
}

Work Zero::scatter(const at::Tensor& whole) {
  bytes_sent_ += one_way_bytes(whole, groups_.shards.size());
  return groups_.shards.reduce_scatter(own_part(whole), whole, ReduceOp::Sum);
}

void Zero::ready(const param::Parameter& param) {
  if (sink_) return;
  for (const int piece : of_param_.at(param.name)) --pieces_[piece].num_missing;
  for (; next_ < pieces_.size() && pieces_[next_].num_missing == 0; ++next_) {
    Piece& piece = pieces_[next_];
    const comm::CallName name(piece.name);
    piece.work = scatter(store_.flat_grads().narrow(0, piece.begin, piece.end - piece.begin));
  }
}

// Takes the gradients of a unit from one microbatch.
void Zero::take(int unit, const at::Tensor& gradient) {
  const comm::CallName name(names_[unit]);
  in_flight_.push_back({unit, gradient, scatter(gradient)});
  if (in_flight_.size() > kMostInFlight) land();
}

void Zero::land() {
  InFlight& first = in_flight_.front();
  first.work.order_before(groups_.shards.queue());
  const at::Tensor& sum = store_.owned()[first.unit].grad;
  const at::Tensor part = own_part(first.gradient);
  written_[first.unit] ? sum.add_(part) : sum.copy_(part);
  written_[first.unit] = true;
  sink_->recycle(first.gradient);
  in_flight_.pop_front();
}

void Zero::flush() {
  if (!sink_) check(next_ == pieces_.size(), "every parameter is ready when a stage's backward is over");
}

void Zero::finish() {
  flush();
  while (!in_flight_.empty()) land();
  if (sink_) {
    const bool all = std::all_of(written_.begin(), written_.end(), [](bool written) { return written; });
    check(all, "every unit has gradients when a step is over");
    written_.assign(written_.size(), false);
  } else {
    finish_pieces();
  }
  add_copies();
  bytes_sent_ += add_tied_uses(store_, groups_.tied);
  if (gatherer_) gatherer_->drop();
}

void Zero::finish_pieces() {
  for (Piece& piece : pieces_) {
    std::exchange(piece.work, {}).order_before(groups_.shards.queue());
    piece.num_missing = piece.num_params;
  }
  next_ = 0;
}

// All-reduces this rank's shards over the copies. Without a sink pieces are reduced separately, because the uses of a
// tied parameter are added afterwards, as without sharding.
void Zero::add_copies() {
  Communicator& copies = groups_.copies;
  if (copies.size() == 1) return;
  const auto sum = [&](const at::Tensor& gradients) {
    bytes_sent_ += all_reduce_bytes(gradients, copies.size());
    copies.all_reduce(gradients, ReduceOp::Sum).order_before(copies.queue());
  };
  if (sink_) {
    const comm::CallName name("gradients of copies");
    return sum(store_.flat_grads());
  }
  for (const Piece& piece : pieces_) {
    const comm::CallName name(piece.name);
    sum(own_part(store_.flat_grads().narrow(0, piece.begin, piece.end - piece.begin)));
  }
}

void Zero::updated() {
  if (gatherer_) return;
  const comm::CallName name("updated parameters");
  std::vector<Work> works;
  for (size_t unit = 0; unit < store_.units().size(); ++unit) {
    const at::Tensor& whole = store_.unit_data(static_cast<int>(unit));
    works.push_back(groups_.shards.all_gather(whole, store_.owned()[unit].data));
    bytes_sent_ += one_way_bytes(whole, groups_.shards.size());
  }
  for (Work& work : works) work.order_before(groups_.shards.queue());
}

int64_t Zero::bytes_sent() const { return bytes_sent_ + (gatherer_ ? gatherer_->bytes_sent() : 0); }

}  // namespace braid::sync
