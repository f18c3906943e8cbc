// Which samples of a user's data set a rank takes, epoch after epoch: index arithmetic in constant memory. (Sampler,
// next door, is the one of the language models: it reads tokens.)
#pragma once

#include <cstdint>
#include <optional>

namespace braid {

enum class SampleOrder { Shuffled, AsGiven };

// The treatment of an epoch's last round, when fewer samples are left than there are ranks.
enum class UnevenTail {
  Pad,     // the ranks without one take samples from the beginning of the epoch's order once more
  Drop,    // nobody takes them in this epoch
  Uneven,  // the ranks without one are told so
};

struct ShardedData {
  int64_t num_samples = 0;
  uint64_t seed = 0;
  SampleOrder order = SampleOrder::Shuffled;
  UnevenTail tail = UnevenTail::Pad;
};

// The progress of all ranks together: the same on every rank, and independent of their number.
struct DataPosition {
  int64_t epoch = 0;
  int64_t taken = 0;  // of the epoch's order

  bool operator==(const DataPosition&) const = default;
};

// An epoch has one order of all samples, a function of (seed, epoch) alone (a Feistel permutation: no table). In a
// round, rank r of n takes the r-th of the next n places:
//
//   order    7 2 9 0 | 4 8 1 5 | 6 3 . .        10 samples, 4 ranks: Pad takes 7 and 2 again
//   rank     0 1 2 3 | 0 1 2 3 | 0 1 2 3
//
// So ranks that each take b / n samples per step take together the same b, whatever their number n.
class ShardedSampler {
 public:
  // `rank` is one of `num_ranks` (check). Throws ConfigError when there is no sample, or with Drop not one per rank.
  ShardedSampler(const ShardedData& data, int rank, int num_ranks);

  // This rank's sample of the next round; nothing with Uneven where this rank has none. Every rank makes as many calls
  // as every other. After the last round of an epoch the next one begins.
  std::optional<int64_t> next();
  // Calls of next() until the epoch is over; the same on all ranks.
  int64_t rounds_left() const;

  // Between two calls of next(), when all ranks have made the same number of them: what go_to() of a sampler of the
  // same data, with any number of ranks, takes to go on there. The tail is then that of the samples left.
  DataPosition position() const { return {epoch_, taken_}; }
  // Throws ConfigError when the position is none of this data.
  void go_to(const DataPosition& position);

  // The sample at `place` of an epoch's order.
  int64_t sample(int64_t epoch, int64_t place) const;

 private:
  void begin_next_epoch_when_over();

  ShardedData data_;
  int rank_, num_ranks_;
  uint64_t order_key_;
  int64_t epoch_ = 0, taken_ = 0;
};

}  // namespace braid
