// A codec that sends the elements of largest magnitude as (index, value) pairs. Of equal magnitudes it sends those with
// lower indices. Sources: Stich, Cordonnier, Jaggi, "Sparsified SGD with Memory" (NeurIPS 2018), definition 2.1 and
// algorithm 1; Lin et al., "Deep Gradient Compression" (ICLR 2018), section 3. The momentum correction of the latter is
// for another optimizer than AdamW and is not implemented.
#pragma once

#include "braid/sync/reducers/codec.h"

namespace braid::sync {

//   message   u32 index x k, ascending | float32 value x k
class TopKCodec final : public Codec {
 public:
  // 0 < fraction <= 1.
  explicit TopKCodec(double fraction) : fraction_(fraction) {}

  // Returns how many of `count` elements are sent: the fraction of them, rounded up, at least one.
  int64_t num_kept(int64_t count) const;

  int64_t num_bytes(int64_t count) const override { return 8 * num_kept(count); }
  void encode(const at::Tensor& values, std::byte* message) const override;
  void add(const std::byte* message, const at::Tensor& sum) const override;

 private:
  const double fraction_;
};

}  // namespace braid::sync
