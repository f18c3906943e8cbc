// Buckets are cut once. An epoch changes only the order of samples inside each bucket and the order of the steps.
#include "braid/data/length_buckets.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/data/permutation.h"

namespace braid {
namespace {

void refuse_faults(std::span<const int64_t> lengths, const LengthBucketOptions& options) {
  std::vector<Problem> found;
  if (!(options.max_padding >= 0 && options.max_padding < 1)) {
    found.push_back({"max_padding", cat(options.max_padding), "must be at least 0 and below 1", ""});
  }
  if (options.max_tokens < 1) found.push_back({"max_tokens", cat(options.max_tokens), "must be at least 1", "1"});
  if (lengths.empty()) found.push_back({"lengths", "", "must have one sample at least", ""});
  const auto count = [&](const auto& wrong) { return std::count_if(lengths.begin(), lengths.end(), wrong); };
  const auto empty = count([](int64_t length) { return length < 1; });
  if (empty > 0) found.push_back({"lengths", cat(empty, " of them are below 1"), "must be at least 1", ""});
  const auto long_ones = count([&](int64_t length) { return length > options.max_tokens; });
  if (options.max_tokens >= 1 && long_ones > 0) {
    found.push_back({"max_tokens", cat(options.max_tokens),
                     cat("is less than the length of ", counted(long_ones, "sample")),
                     cat(*std::max_element(lengths.begin(), lengths.end()))});
  }
  if (!found.empty()) throw ConfigError(std::move(found));
}

}  // namespace

LengthBuckets::LengthBuckets(std::span<const int64_t> lengths, const LengthBucketOptions& options, int num_ranks)
    : options_(options), num_ranks_(num_ranks) {
  check(num_ranks >= 1, "a group has a rank");
  refuse_faults(lengths, options);
  fill_buckets(lengths);
  cut_buckets();
}

// Fills buckets from the longest sample down. A bucket's length is the length of its longest sample; samples join while
// padding them to it respects max_padding.
void LengthBuckets::fill_buckets(std::span<const int64_t> lengths) {
  by_length_.resize(lengths.size());
  std::iota(by_length_.begin(), by_length_.end(), 0);
  const auto length_of = [&](int64_t sample) { return lengths[static_cast<size_t>(sample)]; };
  std::stable_sort(by_length_.begin(), by_length_.end(),
                   [&](int64_t a, int64_t b) { return length_of(a) < length_of(b); });
  for (auto end = static_cast<int64_t>(by_length_.size()); end > 0;) {
    const int64_t longest = length_of(by_length_[static_cast<size_t>(end - 1)]);
    const double shortest = (1 - options_.max_padding) * static_cast<double>(longest);
    int64_t first = end - 1;
    while (first > 0 && static_cast<double>(length_of(by_length_[static_cast<size_t>(first - 1)])) >= shortest) --first;
    buckets_.push_back({first, end - first, longest, 0, 0});
    end = first;
  }
  std::reverse(buckets_.begin(), buckets_.end());
}

// Cuts as few batches as max_tokens allows. Then adds batches where they are the largest, until their number is a
// multiple of the number of ranks or every batch has one sample.
void LengthBuckets::cut_buckets() {
  for (Bucket& bucket : buckets_) {
    const int64_t rows = options_.max_tokens / bucket.length;
    bucket.num_batches = (bucket.num_samples + rows - 1) / rows;
    num_batches_ += bucket.num_batches;
  }
  const auto tokens = [](const Bucket& bucket) {  // tokens of a batch; 0 if every batch already has one sample
    if (bucket.num_batches == bucket.num_samples) return 0.0;
    return static_cast<double>(bucket.num_samples * bucket.length) / static_cast<double>(bucket.num_batches);
  };
  const auto fewer = [&](const Bucket& a, const Bucket& b) { return tokens(a) < tokens(b); };
  while (num_batches_ % num_ranks_ != 0) {
    const auto largest = std::max_element(buckets_.begin(), buckets_.end(), fewer);
    if (tokens(*largest) == 0) break;
    ++largest->num_batches;
    ++num_batches_;
  }
  int64_t batch = 0;
  for (Bucket& bucket : buckets_) batch += bucket.num_batches, bucket.first_batch = batch - bucket.num_batches;
  steps_per_epoch_ = (num_batches_ + num_ranks_ - 1) / num_ranks_;
}

LengthBatch LengthBuckets::batch(int64_t step, int rank) const {
  check(step >= 0 && rank >= 0 && rank < num_ranks_, "a batch is of a step and a rank");
  const uint64_t epoch_key =
      random_bits(stream_key(options_.seed, "data.buckets"), static_cast<uint64_t>(step / steps_per_epoch_));
  const data::Permutation steps(steps_per_epoch_, epoch_key);
  const int64_t number = steps(step % steps_per_epoch_) * num_ranks_ + rank;
  if (number >= num_batches_) return {};
  const auto after = std::upper_bound(buckets_.begin(), buckets_.end(), number,
                                      [](int64_t n, const Bucket& bucket) { return n < bucket.first_batch; });
  return batch_of(*std::prev(after), number, epoch_key);
}

LengthBatch LengthBuckets::batch_of(const Bucket& bucket, int64_t number, uint64_t epoch_key) const {
  const data::Permutation order(bucket.num_samples, random_bits(epoch_key, static_cast<uint64_t>(bucket.first_batch)));
  const int64_t part = number - bucket.first_batch;
  const auto cut = [&](int64_t n) {  // first sample of part n; avoids a product of two large numbers
    const int64_t rows = bucket.num_samples / bucket.num_batches, longer = bucket.num_samples % bucket.num_batches;
    return n * rows + std::min(n, longer);
  };
  LengthBatch batch{{}, bucket.length};
  for (int64_t place = cut(part); place < cut(part + 1); ++place) {
    batch.samples.push_back(by_length_[static_cast<size_t>(bucket.first_sample + order(place))]);
  }
  return batch;
}

}  // namespace braid
