// Batches of samples of similar length: how much padding a batch may have is promised, and so is how much it may hold.
// It knows lengths and numbers of samples, nothing else of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

struct LengthBucketOptions {
  int64_t max_tokens = 0;    // of a batch, padding included
  double max_padding = 0.1;  // share of a batch's tokens that may be padding, in [0, 1)
  uint64_t seed = 0;
};

struct LengthBatch {
  std::vector<int64_t> samples;
  int64_t length = 0;  // no sample is longer; both promises hold for a batch that is padded to it
};

// A bucket is all samples whose lengths lie between (1 - max_padding) l and l, for some l: any of its samples make a
// batch with little padding. Each epoch shuffles every bucket and cuts it into batches that differ by one sample at
// most; the n ranks of a step take n batches that are neighbours in length, and the steps come in a new order:
//
//   length   3 3 3 | 4 4 5 5 5 5 | 9 9 9 9        buckets
//   batches  [   ]   [   ] [   ]   [ ] [ ]
//   steps    (-- step 2 -) (-- step 0 -) ...      2 ranks
//
// Every sample comes once per epoch, and every rank has as many batches as every other. Where that takes more batches
// than promises ask for, the largest are cut in two; only where there are too few samples for that, some ranks (fewer
// than n batches in an epoch) get one without samples.
class LengthBuckets {
 public:
  // lengths[i] is that of sample i. Throws ConfigError, with every problem: no samples, lengths below 1 or above
  // max_tokens, max_padding outside [0, 1). `num_ranks` is positive (check). Keeps 8 bytes per sample.
  LengthBuckets(std::span<const int64_t> lengths, const LengthBucketOptions& options, int num_ranks);

  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  // A pure function: steps count from 0 through all epochs, so a run goes on where it stopped by going on with the next
  // step. Another number of ranks has other steps: it begins with an epoch, at a multiple of its steps_per_epoch().
  LengthBatch batch(int64_t step, int rank) const;

 private:
  struct Bucket {
    int64_t first_sample, num_samples;  // places in by_length_
    int64_t length;                     // the longest
    int64_t first_batch, num_batches;
  };
  void fill_buckets(std::span<const int64_t> lengths);
  void cut_buckets();
  LengthBatch batch_of(const Bucket& bucket, int64_t number, uint64_t epoch_key) const;

  LengthBucketOptions options_;
  int num_ranks_;
  std::vector<int64_t> by_length_;  // samples, ascending
  std::vector<Bucket> buckets_;
  int64_t num_batches_ = 0;  // with samples
  int64_t steps_per_epoch_ = 0;
};

}  // namespace braid
