// Creates the reducer for each value of sync.compression.
#include "braid/sync/reducers/make_reducer.h"

#include <ATen/ops/empty.h>

#include <memory>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/communicator.h"
#include "braid/param/memory_account.h"
#include "braid/sync/grad_reducer.h"
#include "braid/sync/reducers/block_codecs.h"
#include "braid/sync/reducers/codec.h"
#include "braid/sync/reducers/late_reducer.h"
#include "braid/sync/reducers/narrow_reducer.h"
#include "braid/sync/reducers/power_sgd_reducer.h"
#include "braid/sync/reducers/top_k_codec.h"
#include "braid/sync/ring_bytes.h"

namespace braid::sync {
namespace {

// A reducer of compressed gradients with error feedback. Every rank sends its encoded (gradient + residual) to all
// others, and adds up all messages in the order of the ranks. Each run of a slice is encoded by itself.
class GatherReducer final : public GradReducer {
 public:
  // `group` outlives this.
  GatherReducer(Communicator& group, std::unique_ptr<Codec> codec) : group_(group), codec_(std::move(codec)) {}

  void plan(const GradLayout& layout) override;
  void start(int bucket, const at::Tensor& grads) override;
  void finish(int bucket) override;
  int64_t bytes_sent() const override { return bytes_sent_; }
  std::vector<ReducerState> state() override;

 private:
  struct Flight {
    at::Tensor inbox;  // bytes: one message per rank, with all runs one after another
    at::Tensor grads;
    Work work;
  };
  std::byte* message(Flight& flight, int rank) const;

  Communicator& group_;
  const std::unique_ptr<Codec> codec_;
  ErrorFeedback residual_;
  std::vector<BucketShape> buckets_;
  std::vector<Flight> flights_;  // by bucket
  int64_t bytes_sent_ = 0;
};

void GatherReducer::plan(const GradLayout& layout) {
  residual_.plan(layout);
  buckets_ = layout.buckets;
  flights_.clear();
  const param::MemoryScope scope(param::MemoryCategory::Communication);
  for (const BucketShape& bucket : buckets_) {
    int64_t bytes = 0;
    for (const GradSlice& slice : bucket.slices) {
      for (const mesh::ElementRun& run : slice.runs) bytes += codec_->num_bytes(run.end - run.begin);
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
    for (const mesh::ElementRun& run : slice.runs) {
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
      for (const mesh::ElementRun& run : slice.runs) {
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

std::unique_ptr<GradReducer> compressed(const SyncSpec& spec, Communicator& group, uint64_t seed) {
  const auto gather = [&](std::unique_ptr<Codec> codec) {
    return std::make_unique<GatherReducer>(group, std::move(codec));
  };
  switch (spec.compression) {
    case CompressionKind::None:
      break;
    case CompressionKind::BFloat16:
      return std::make_unique<NarrowReducer>(group, WireType::BFloat16);
    case CompressionKind::Float16:
      return std::make_unique<NarrowReducer>(group, WireType::Float16);
    case CompressionKind::TopK:
      return gather(std::make_unique<TopKCodec>(spec.compression_fraction));
    case CompressionKind::OneBit:
      return gather(std::make_unique<OneBitCodec>());
    case CompressionKind::EightBit:
      return gather(std::make_unique<EightBitCodec>());
    case CompressionKind::PowerSgd:
      return std::make_unique<PowerSgdReducer>(group, spec.compression_rank, seed);
  }
  return std::make_unique<PlainReducer>(group);
}

}  // namespace

std::unique_ptr<GradReducer> make_reducer(const SyncSpec& spec, Communicator& replicas, uint64_t seed) {
  auto plain = std::make_unique<PlainReducer>(replicas);
  if (spec.compression == CompressionKind::None || replicas.size() == 1) return plain;
  auto chosen = compressed(spec, replicas, seed);
  if (spec.compression_start == 0) return chosen;
  return std::make_unique<LateReducer>(std::move(plain), std::move(chosen), spec.compression_start);
}

}  // namespace braid::sync
