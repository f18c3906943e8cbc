// The rounds of an epoch: in each, the ranks take consecutive samples.
#include "braid/data/sharded_sampler.h"

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/data/permutation.h"

namespace braid {

ShardedSampler::ShardedSampler(const ShardedData& data, int rank, int num_ranks)
    : data_(data), rank_(rank), num_ranks_(num_ranks), order_key_(stream_key(data.seed, "data.sharded")) {
  check(num_ranks >= 1 && rank >= 0 && rank < num_ranks, "a rank is one of its group");
  const int64_t fewest = data.tail == UnevenTail::Drop ? num_ranks : 1;
  if (data.num_samples < fewest) {
    const char* why = fewest == 1 ? "must be at least 1" : "must be one per rank at least, for tails are dropped";
    throw ConfigError({{"num_samples", cat(data.num_samples), why, cat(fewest)}});
  }
}

std::optional<int64_t> ShardedSampler::next() {
  const int64_t place = taken_ + rank_, epoch = epoch_;
  taken_ += num_ranks_;
  begin_next_epoch_when_over();
  if (place < data_.num_samples) return sample(epoch, place);
  if (data_.tail == UnevenTail::Uneven) return std::nullopt;
  return sample(epoch, place % data_.num_samples);
}

int64_t ShardedSampler::rounds_left() const {
  const int64_t left = data_.num_samples - taken_;
  return data_.tail == UnevenTail::Drop ? left / num_ranks_ : (left + num_ranks_ - 1) / num_ranks_;
}

void ShardedSampler::go_to(const DataPosition& position) {
  if (position.epoch < 0 || position.taken < 0 || position.taken >= data_.num_samples) {
    throw ConfigError({{"position", cat("epoch ", position.epoch, ", ", counted(position.taken, "sample"), " taken"),
                        cat("must lie in a data set of ", counted(data_.num_samples, "sample")), ""}});
  }
  epoch_ = position.epoch;
  taken_ = position.taken;
  begin_next_epoch_when_over();
}

int64_t ShardedSampler::sample(int64_t epoch, int64_t place) const {
  if (data_.order == SampleOrder::AsGiven) return place;
  return data::Permutation(data_.num_samples, random_bits(order_key_, static_cast<uint64_t>(epoch)))(place);
}

void ShardedSampler::begin_next_epoch_when_over() {
  if (taken_ < data_.num_samples && rounds_left() > 0) return;
  ++epoch_;
  taken_ = 0;
}

}  // namespace braid
