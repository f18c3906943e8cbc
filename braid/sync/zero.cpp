// ZeRO. Reduce-scatters are in place: the sum is in this rank's part of the tensor that was summed.
#include "braid/sync/zero.h"

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/sync/ring_bytes.h"
#include "braid/sync/tied_uses.h"

namespace braid::sync {

int BlockOrder::next(int block, param::Phase phase) const {
  const int next = phase == param::Phase::Forward ? block + 1 : block - 1;
  if (next < 0 || next >= std::ssize(stage_of_block) || stage_of_block[next] != stage_of_block[block]) return -1;
  const bool runs = phase == param::Phase::Forward || runs_backward.empty() || runs_backward[next] == 1;
  return runs ? next : -1;
}

Zero::Zero(param::ParamStore& store, param::UnitSink* sink, ReplicaGroups groups, ZeroOptions options)
    : store_(store), groups_(groups), order_(std::move(options.order)) {
  check(groups.shards.size() == store.sharding().parts && groups.shards.rank() == store.sharding().part,
        "the ranks that shard a copy are the parts of the store, in order");
  check((sink != nullptr) == store.shards_gradients(), "sharded gradients come unit by unit");
  if (store.shards_parameters()) gatherer_.emplace(store, groups.shards, options.memory);
  sink ? void(sums_.emplace(store, *sink, groups)) : plan_pieces();
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
    pieces_.push_back(
        {static_cast<int>(u), unit.begin, unit.end, count, count, {}, name_of_unit("gradients", store_, u)});
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

void Zero::begin_step(int64_t) {
  if (!gatherer_) return;
  const std::optional<std::string> decision = gatherer_->begin_step();
  if (decision && on_choice) on_choice(*decision);
}

void Zero::acquire(int block, param::Phase phase) {
  if (!gatherer_) return;
  gatherer_->acquire(block);
  const int next = order_.next(block, phase);
  if (next < 0) return;
  try {
    gatherer_->prefetch(next);
  } catch (...) {
    gatherer_->release(block);  // the caller does not: the block is not acquired
    throw;
  }
}

void Zero::release(int block, param::Phase) {
  if (gatherer_) gatherer_->release(block);
}

void Zero::drop_prefetched() {
  if (gatherer_) gatherer_->drop_prefetched();
}

at::Tensor Zero::own_part(const at::Tensor& whole) const {
  const int64_t length = whole.numel() / groups_.shards.size();
  return whole.narrow(0, groups_.shards.rank() * length, length);
}

void Zero::ready(const param::Parameter& param) {
  if (sums_) return sums_->ready(param);
  for (const int piece : of_param_.at(param.name)) --pieces_[piece].num_missing;
  for (; next_ < pieces_.size() && pieces_[next_].num_missing == 0; ++next_) {
    Piece& piece = pieces_[next_];
    const comm::CallName name(piece.name);
    const at::Tensor whole = store_.flat_grads().narrow(0, piece.begin, piece.end - piece.begin);
    bytes_sent_ += one_way_bytes(whole, groups_.shards.size());
    piece.work = groups_.shards.reduce_scatter(own_part(whole), whole, ReduceOp::Sum);
  }
}

void Zero::flush() {
  if (!sums_) check(next_ == pieces_.size(), "every parameter is ready when a stage's backward is over");
}

void Zero::finish() {
  flush();
  sums_ ? sums_->finish() : finish_pieces();
  bytes_sent_ += add_tied_uses(store_, groups_.tied);
  if (gatherer_) gatherer_->end_step();
}

void Zero::finish_pieces() {
  for (Piece& piece : pieces_) {
    std::exchange(piece.work, {}).order_before(groups_.shards.queue());
    piece.num_missing = piece.num_params;
  }
  next_ = 0;
  add_copies();
}

// All-reduces this rank's shards over the copies, one after the other, because the uses of a tied parameter are added
// afterwards, as without sharding.
void Zero::add_copies() {
  Communicator& copies = groups_.copies;
  if (copies.size() == 1) return;
  for (const Piece& piece : pieces_) {
    const comm::CallName name(piece.name);
    const at::Tensor gradients = own_part(store_.flat_grads().narrow(0, piece.begin, piece.end - piece.begin));
    bytes_sent_ += all_reduce_bytes(gradients, copies.size());
    copies.all_reduce(gradients, ReduceOp::Sum).order_before(copies.queue());
  }
}

void Zero::updated() {
  if (gatherer_ || groups_.shards.size() == 1) return;
  const comm::CallName name("updated parameters");
  std::vector<Work> works;
  for (size_t unit = 0; unit < store_.units().size(); ++unit) {
    const at::Tensor& whole = store_.unit_data(static_cast<int>(unit));
    works.push_back(groups_.shards.all_gather(whole, store_.owned()[unit].data));
    bytes_sent_ += one_way_bytes(whole, groups_.shards.size());
  }
  for (Work& work : works) work.order_before(groups_.shards.queue());
}

int64_t Zero::final_from() const {
  if (groups_.copies.size() > 1) return Replication::final_from();
  if (sums_) return sums_->final_from();
  size_t piece = 0;
  while (piece < next_ && pieces_[piece].work.done()) ++piece;
  return piece < pieces_.size() ? pieces_[piece].end : 0;
}

int64_t Zero::bytes_sent() const {
  return bytes_sent_ + (gatherer_ ? gatherer_->bytes_sent() : 0) + (sums_ ? sums_->bytes_sent() : 0);
}

}  // namespace braid::sync
