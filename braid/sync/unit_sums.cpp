// Reduce-scatters are in place: the sum is in this rank's part of the tensor that was summed.
#include "braid/sync/unit_sums.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/sync/ring_bytes.h"
#include "braid/sync/unit_gatherer.h"

namespace braid::sync {

// In memory, gradients of two units are in flight: one is reduced while the next is written. On disk it is one, since
// another one is being written there.
UnitSums::UnitSums(param::ParamStore& store, param::UnitSink& sink, ReplicaGroups groups)
    : store_(store), sink_(sink), groups_(groups), most_in_flight_(store.has_gradients_on_disk() ? 1 : 2) {
  if (store.has_gradients_on_disk()) {
    writes_.emplace(*store.disk(), [&sink](const at::Tensor& gradient) { sink.recycle(gradient); });
  }
  for (size_t unit = 0; unit < store.units().size(); ++unit) {
    names_.push_back(name_of_unit("gradients", store, unit));
    num_missing_.push_back(store.units()[unit].num_params);
  }
  sink.on_unit = [this](int unit, int place, const at::Tensor& gradient) { take(unit, place, gradient); };
}

at::Tensor UnitSums::own_part(const at::Tensor& whole) const {
  const int64_t length = whole.numel() / groups_.shards.size();
  return whole.narrow(0, groups_.shards.rank() * length, length);
}

// Takes the gradients of a unit from one microbatch or, in reproducible mode, their sum over microbatches.
void UnitSums::take(int unit, int place, const at::Tensor& gradient) {
  const comm::CallName name(names_[static_cast<size_t>(unit)]);
  bytes_sent_ += one_way_bytes(gradient, groups_.shards.size());
  in_flight_.push_back(
      {unit, place, gradient, groups_.shards.reduce_scatter(own_part(gradient), gradient, ReduceOp::Sum)});
  if (in_flight_.size() > most_in_flight_) land();
}

void UnitSums::land() {
  InFlight first = std::move(in_flight_.front());
  in_flight_.pop_front();
  first.work.order_before(groups_.shards.queue());
  const at::Tensor part = own_part(first.gradient);
  const at::Tensor sum = store_.owned_grad(first.unit, first.place);
  const bool is_first = begun_.insert({first.unit, first.place}).second;
  if (writes_) {
    if (!is_first) store_.disk()->add_to(part, sum);
    return writes_->write(sum, part, first.gradient);
  }
  is_first ? sum.copy_(part) : sum.add_(part);
  sink_.recycle(first.gradient);
}

void UnitSums::ready(const param::Parameter& param) {
  const int unit = store_.unit_of(param);
  --num_missing_[static_cast<size_t>(unit)];
  while (!in_flight_.empty() && in_flight_.front().unit != unit) land();
}

int64_t UnitSums::final_from() const {
  size_t unit = store_.units().size();
  const auto is_final = [this](size_t u) {
    const auto is_of_unit = [u](const InFlight& sum) { return sum.unit == static_cast<int>(u); };
    return num_missing_[u] == 0 && std::ranges::none_of(in_flight_, is_of_unit);
  };
  while (unit > 0 && is_final(unit - 1)) --unit;
  return unit > 0 ? store_.units()[unit - 1].end : 0;
}

void UnitSums::finish() {
  while (!in_flight_.empty()) land();
  if (writes_) writes_->finish();
  for (const param::Parameter& param : store_.params()) {
    check(begun_.contains({store_.unit_of(param), 0}), "every unit has gradients when a step is over");
  }
  add_copies();
  begun_.clear();
  for (size_t unit = 0; unit < store_.units().size(); ++unit) num_missing_[unit] = store_.units()[unit].num_params;
}

// All-reduces this rank's shards over the copies: those on disk one after the other.
void UnitSums::add_copies() {
  Communicator& copies = groups_.copies;
  if (copies.size() == 1) return;
  const auto sum = [&](const at::Tensor& gradients) {
    bytes_sent_ += all_reduce_bytes(gradients, copies.size());
    copies.all_reduce(gradients, ReduceOp::Sum).order_before(copies.queue());
  };
  if (!writes_) {
    const comm::CallName name("gradients of copies");
    return sum(store_.flat_grads());
  }
  for (const auto& [unit, place] : begun_) {
    const comm::CallName name(names_[static_cast<size_t>(unit)]);
    store_.disk()->change(store_.owned_grad(unit, place), sum);
  }
}

}  // namespace braid::sync
