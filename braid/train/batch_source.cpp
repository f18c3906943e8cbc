// Copies token windows into int64 tensors.
#include "braid/train/batch_source.h"

#include <ATen/ops/empty.h>

#include "braid/base/seeds.h"

namespace braid {

BatchSource::BatchSource(const RunSpec& spec, const Blend& blend, const RankGroups& groups, uint64_t seed)
    : sampler_(blend, spec.model.context, seed),
      dropout_key_(stream_key(spec.train.seed, "dropout")),
      batch_(spec.train.batch),
      microbatch_(spec.train.microbatch),
      context_(spec.model.context),
      by_document_(spec.data.attention == "document"),
      data_rank_(groups.data->rank()),
      data_size_(groups.data->size()),
      num_microbatches_(batch_ / (microbatch_ * data_size_)) {}

Microbatch BatchSource::microbatch(int64_t step, int micro) const {
  const int64_t first = first_sample({batch_, microbatch_, data_size_}, step, data_rank_, micro);
  auto tokens_bt = at::empty({microbatch_, context_}, at::kLong);
  auto targets_bt = at::empty({microbatch_, context_}, at::kLong);
  std::vector<int64_t> window(static_cast<size_t>(context_) + 1);
  for (int b = 0; b < microbatch_; ++b) {
    sampler_.read(first + b, window);
    std::copy(window.begin(), window.end() - 1, tokens_bt.mutable_data_ptr<int64_t>() + int64_t{b} * context_);
    std::copy(window.begin() + 1, window.end(), targets_bt.mutable_data_ptr<int64_t>() + int64_t{b} * context_);
  }
  const uint64_t place = static_cast<uint64_t>(step) * num_global_microbatches() + global_micro(micro);
  Microbatch microbatch{micro, random_bits(dropout_key_, place), true, std::move(tokens_bt), std::move(targets_bt)};
  if (by_document_) microbatch.documents_bt = documents(first);
  return microbatch;
}

at::Tensor BatchSource::documents(int64_t first) const {
  auto documents_bt = at::empty({microbatch_, context_}, at::kLong);
  for (int b = 0; b < microbatch_; ++b) {
    int64_t* row = documents_bt.mutable_data_ptr<int64_t>() + int64_t{b} * context_;
    sampler_.read_documents(first + b, {row, static_cast<size_t>(context_)});
  }
  return documents_bt;
}

uint64_t BatchSource::hash(int64_t step) const { return sampler_.hash(step * batch_, batch_); }

}  // namespace braid
