// Reduces in two levels. A bucket whose size the ranks of a node do not divide is copied into a padded one.
#include "braid/sync/reducers/node_reducer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "braid/param/memory_account.h"
#include "braid/sync/node_groups.h"

namespace braid::sync {

void NodeReducer::plan(const GradLayout& layout) {
  const param::MemoryScope scope(param::MemoryCategory::Communication);
  const int64_t parts = groups_.inside->size();
  GradLayout of_parts{layout.options, {}};
  flights_.clear();
  for (const BucketShape& bucket : layout.buckets) {
    const int64_t size = bucket.end - bucket.begin, part = (size + parts - 1) / parts;
    Flight flight{at::empty({part}, layout.options)};
    if (part * parts != size) flight.padded = at::zeros({part * parts}, layout.options);
    flights_.push_back(std::move(flight));
    of_parts.buckets.push_back({0, part, {}});
  }
  across_->plan(of_parts);
}

void NodeReducer::start(int bucket, const at::Tensor& grads) {
  Flight& flight = flights_[bucket];
  flight.grads = grads;
  if (flight.padded.defined()) flight.padded.narrow(0, 0, grads.numel()).copy_(grads);
  flight.work = groups_.inside->reduce_scatter(flight.part, whole(flight), ReduceOp::Sum);
  bytes_inside_ += one_way_bytes(whole(flight), groups_.inside->size());
}

void NodeReducer::advance(int bucket) {
  Flight& flight = flights_[bucket];
  flight.work.order_before(groups_.inside->queue());
  across_->start(bucket, flight.part);
}

void NodeReducer::finish(int bucket) {
  Flight& flight = flights_[bucket];
  across_->advance(bucket);
  across_->finish(bucket);
  groups_.inside->all_gather(whole(flight), flight.part).order_before(groups_.inside->queue());
  bytes_inside_ += one_way_bytes(whole(flight), groups_.inside->size());
  if (flight.padded.defined()) flight.grads.copy_(flight.padded.narrow(0, 0, flight.grads.numel()));
  flight.work = Work();
  flight.grads.reset();
}

}  // namespace braid::sync
