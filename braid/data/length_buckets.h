// Batches of samples of similar length, with a guaranteed limit on padding and a guaranteed limit on tokens. Only the
// lengths and indices of samples are used.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

struct LengthBucketOptions {
  int64_t max_tokens = 0;    // most tokens of a batch, padding included
  double max_padding = 0.1;  // largest fraction of a batch's tokens that may be padding, in [0, 1)
  uint64_t seed = 0;
};

struct LengthBatch {
  std::vector<int64_t> samples;
  int64_t length = 0;  // length to pad to: no sample is longer, and both limits hold after padding
};

// A bucket holds all samples whose lengths lie between (1 - max_padding) l and l, for some l. Any of its samples make a
// batch with little padding. Each epoch shuffles every bucket and cuts it into batches whose sizes differ by at most
// one sample. The n ranks of a step take n batches that are neighbours in length. The steps of an epoch are shuffled:
//
//   length   3 3 3 | 4 4 5 5 5 5 | 9 9 9 9        buckets
//   batches  [   ]   [   ] [   ]   [ ] [ ]
//   steps    (-- step 2 -) (-- step 0 -) ...      2 ranks
//
// Every sample comes once per epoch, and all ranks have equally many batches. If the number of batches is not a
// multiple of n, the largest batches are cut in two. If every batch has one sample before
// that, some ranks get a batch without samples.
class LengthBuckets {
 public:
  // lengths[i] is the length of sample i. Throws ConfigError with every problem: no samples, lengths below 1 or above
  // max_tokens, max_padding outside [0, 1). REQUIRES: `num_ranks` is positive. Keeps 8 bytes per sample.
  LengthBuckets(std::span<const int64_t> lengths, const LengthBucketOptions& options, int num_ranks);

  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  // Returns the batch of `rank` at `step`; a pure function. Steps count from 0 through all epochs, so a run resumes
  // with the next step. Steps depend on the number of ranks: a run with another number begins at the start of an epoch,
  // a multiple of its own steps_per_epoch().
  LengthBatch batch(int64_t step, int rank) const;

 private:
  struct Bucket {
    int64_t first_sample, num_samples;  // range of indices in by_length_
    int64_t length;                     // length of the longest sample
    int64_t first_batch, num_batches;
  };
  void fill_buckets(std::span<const int64_t> lengths);
  void cut_buckets();
  LengthBatch batch_of(const Bucket& bucket, int64_t number, uint64_t epoch_key) const;

  LengthBucketOptions options_;
  int num_ranks_;
  std::vector<int64_t> by_length_;  // indices of samples, in ascending order of length
  std::vector<Bucket> buckets_;
  int64_t num_batches_ = 0;  // number of batches that have samples
  int64_t steps_per_epoch_ = 0;
};

}  // namespace braid
