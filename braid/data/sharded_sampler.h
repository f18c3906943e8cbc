// Assigns the samples of a user's data set to ranks in each epoch, by index arithmetic in constant memory. The Sampler
// of sampler.h is for language models: it reads tokens.
#pragma once

#include <cstdint>
#include <optional>

namespace braid {

enum class SampleOrder { Shuffled, AsGiven };

// The treatment of an epoch's last round if it has fewer samples than ranks.
enum class UnevenTail {
  Pad,     // the ranks without a sample take one from the beginning of the epoch's order again
  Drop,    // no rank takes these samples in this epoch
  Uneven,  // the ranks without a sample get nullopt from next()
};

struct ShardedData {
  int64_t num_samples = 0;
  uint64_t seed = 0;
  SampleOrder order = SampleOrder::Shuffled;
  UnevenTail tail = UnevenTail::Pad;
};

// The progress of all ranks together. It is equal on all ranks and independent of their number.
struct DataPosition {
  int64_t epoch = 0;
  int64_t taken = 0;  // samples taken of the epoch's order

  bool operator==(const DataPosition&) const = default;
};

// An epoch has one order of all samples, a function of (seed, epoch) alone (a Feistel permutation: no table). In each
// round, rank r of n takes the r-th of the next n samples in that order:
//
//   order    7 2 9 0 | 4 8 1 5 | 6 3 . .        10 samples, 4 ranks: Pad takes 7 and 2 again
//   rank     0 1 2 3 | 0 1 2 3 | 0 1 2 3
//
// If each of n ranks takes b / n samples per step, the ranks together take the same b samples for every n.
class ShardedSampler {
 public:
  // REQUIRES: 0 <= rank < num_ranks. Throws ConfigError if there are no samples, or with Drop fewer than one per rank.
  ShardedSampler(const ShardedData& data, int rank, int num_ranks);

  // Returns this rank's sample of the next round; with Uneven, nullopt if the rank has none. All ranks make equally
  // many calls. After the last round of an epoch the next epoch begins.
  std::optional<int64_t> next();
  // Returns the number of calls of next() until the epoch is over. The result is equal on all ranks.
  int64_t rounds_left() const;

  // Returns the position for go_to() of a sampler of the same data with any number of ranks. After that, the epoch's
  // last round has the samples that are left. REQUIRES: all ranks have made the same number of calls of next().
  DataPosition position() const { return {epoch_, taken_}; }
  // Continues at `position`. Throws ConfigError if the position is not one of this data.
  void go_to(const DataPosition& position);

  // Returns the sample at index `place` of an epoch's order.
  int64_t sample(int64_t epoch, int64_t place) const;

 private:
  void begin_next_epoch_when_over();

  ShardedData data_;
  int rank_, num_ranks_;
  uint64_t order_key_;
  int64_t epoch_ = 0, taken_ = 0;
};

}  // namespace braid
