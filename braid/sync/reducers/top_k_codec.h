// The elements of largest magnitude as (index, value) pairs, the lower index first among equals.
// Sources: Stich, Cordonnier, Jaggi, "Sparsified SGD with Memory" (NeurIPS 2018), definition 2.1 and algorithm 1; Lin
// et al., "Deep Gradient Compression" (ICLR 2018), section 3, whose momentum correction belongs to another optimizer
// than AdamW and is not here.
#pragma once

#include "braid/sync/reducers/codec.h"

namespace braid::sync {

//   message   u32 index x k, ascending | float32 value x k
class TopKCodec final : public Codec {
 public:
  // 0 < fraction <= 1.
  explicit TopKCodec(double fraction) : fraction_(fraction) {}

  // Returns the number of elements sent of `count`: fraction of them, rounded up, at least one.
  int64_t num_kept(int64_t count) const;

  int64_t num_bytes(int64_t count) const override { return 8 * num_kept(count); }
  void encode(const at::Tensor& values, std::byte* message) const override;
  void add(const std::byte* message, const at::Tensor& sum) const override;

 private:
  const double fraction_;
};

}  // namespace braid::sync
