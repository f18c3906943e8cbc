// A rank writes its message where it will lie among all of them, so gathering copies it to others only.
#include "braid/sync/reducers/gather_reducer.h"

#include <ATen/ops/empty.h>

#include "braid/param/memory_account.h"
#include "braid/sync/ring_bytes.h"

namespace braid::sync {

void GatherReducer::plan(const GradLayout& layout) {
  residual_.plan(layout);
  buckets_ = layout.buckets;
  flights_.clear();
  const param::MemoryScope scope(param::MemoryCategory::Communication);
  for (const BucketShape& bucket : buckets_) {
    int64_t bytes = 0;
    for (const GradSlice& slice : bucket.slices) {
      for (const ElementRun& run : slice.runs) bytes += codec_->num_bytes(run.end - run.begin);
    }
    flights_.push_back({at::empty({group_.size() * bytes}, at::kByte), {}, Work()});
  }
}

std::byte* GatherReducer::message(Flight& flight, int rank) const {
  return static_cast<std::byte*>(flight.inbox.mutable_data_ptr()) + flight.inbox.numel() / group_.size() * rank;
}

void GatherReducer::start(int bucket, const at::Tensor& grads) {
  const BucketShape& shape = buckets_[bucket];
  Flight& flight = flights_[bucket];
  flight.grads = grads;
  residual_.of(shape).add_(grads);
  std::byte* place = message(flight, group_.rank());
  for (const GradSlice& slice : shape.slices) {
    for (const ElementRun& run : slice.runs) {
      codec_->encode(residual_.of(slice, run), place);
      place += codec_->num_bytes(run.end - run.begin);
    }
  }
  const int64_t own_bytes = flight.inbox.numel() / group_.size();
  flight.work = group_.all_gather(flight.inbox, flight.inbox.narrow(0, own_bytes * group_.rank(), own_bytes));
  bytes_sent_ += one_way_bytes(flight.inbox, group_.size());
}

void GatherReducer::finish(int bucket) {
  const BucketShape& shape = buckets_[bucket];
  Flight& flight = flights_[bucket];
  flight.work.order_before(group_.queue());
  flight.grads.zero_();
  for (int rank = 0; rank < group_.size(); ++rank) {
    const std::byte* place = message(flight, rank);
    for (const GradSlice& slice : shape.slices) {
      for (const ElementRun& run : slice.runs) {
        const int64_t count = run.end - run.begin;
        codec_->add(place, flight.grads.narrow(0, slice.begin - shape.begin + run.begin, count));
        place += codec_->num_bytes(count);
      }
    }
  }
  flight.work = Work();
  flight.grads.reset();
}

std::vector<ReducerState> GatherReducer::state() {
  return residual_.state(buckets_, [](const GradSlice&) { return true; });
}

}  // namespace braid::sync
