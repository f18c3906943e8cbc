// Copies token windows into int64 tensors.
#include "braid/train/batch_source.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/masking.h"

namespace braid::train {

uint64_t training_order(const TrainSpec& train) { return stream_key(train.seed, "samples"); }
uint64_t evaluation_order() { return stream_key(0, "samples.held_out"); }

BatchSource::BatchSource(const RunSpec& spec, const SampleSource& source, const Groups& groups)
    : first_micros_(spec::first_microbatches(spec)),
      dropout_key_(stream_key(spec.train.seed, "dropout")),
      batch_(spec.train.batch),
      microbatch_(spec.train.microbatch),
      context_(spec.model.context),
      by_document_(spec.data.attention == AttentionMask::Document || spec.data.sequences == SequenceCut::Documents),
      padded_(spec.data.sequences == SequenceCut::Documents),
      part_{groups.at[mesh::Axis::Context], groups.mesh.size(mesh::Axis::Context)},
      first_micro_(first_micros_[groups.at[mesh::Axis::Data]]),
      num_microbatches_(braid::spec::num_microbatches(spec, groups.at[mesh::Axis::Data])),
      num_global_(batch_ / microbatch_) {
  if (!spec::is_masked(spec.model)) {
    sampler_.emplace(source.blend, context_, source.seed);
    return;
  }
  check(source.mask.has_value(), "a masked family has its tokens");
  const data::Cut cut = padded_ ? data::Cut::Documents : data::Cut::Windows;
  const data::MaskedShape shape{context_, spec::num_picked(spec), cut, padded_ ? spec.data.mask_fraction : 1};
  masked_.emplace(source.blend, shape, *source.mask, source.seed);
}

void BatchSource::read_for(int data_rank) {
  const auto place = static_cast<size_t>(data_rank);
  check(first_micros_.at(place + 1) - first_micros_[place] == num_microbatches_, "shares of equal size");
  first_micro_ = first_micros_[place];
}

int64_t BatchSource::first_of(int64_t step, int micro) const {
  return data::first_sample({batch_, microbatch_}, step, global_micro(micro));
}

nn::Microbatch BatchSource::microbatch(int64_t step, int micro, MicrobatchParts parts) const {
  const int64_t first = first_of(step, micro);
  const uint64_t place = static_cast<uint64_t>(step) * num_global_microbatches() + global_micro(micro);
  nn::Microbatch microbatch;
  microbatch.micro = micro;
  microbatch.dropout_key = random_bits(dropout_key_, place);
  if (masked_) {
    read_masked(first, parts, microbatch);
    if (padded_) microbatch.num_targets = targets_of(step * batch_, batch_) / num_global_;
    return microbatch;
  }
  if (parts.tokens) microbatch.tokens_bt = tokens(first, 0);
  if (parts.targets) microbatch.targets_bt = tokens(first, 1);
  if (by_document_) microbatch.documents_bt = documents(first);
  return microbatch;
}

nn::Microbatch BatchSource::own_tokens(nn::Microbatch read) const {
  if (part_.count == 1) return read;
  const int64_t t = context_ / part_.count, first = part_.number * t;
  const auto own = [&](const at::Tensor& all_bt) { return all_bt.narrow(1, first, t).contiguous(); };
  if (read.tokens_bt.defined()) read.tokens_bt = own(read.tokens_bt);
  if (!read.targets_bt.defined()) return read;
  if (read.num_targets == 0) read.num_targets = static_cast<double>(read.targets_bt.numel());
  if (!read.rows_bj.defined()) {
    read.targets_bt = own(read.targets_bt);
    return read;
  }
  const at::Tensor places_bj = read.rows_bj.sub(first), others_bj = places_bj.lt(0).logical_or_(places_bj.ge(t));
  read.rows_bj = places_bj.masked_fill(others_bj, 0);
  read.targets_bt = read.targets_bt.masked_fill(others_bj, nn::kNoTarget);
  return read;
}

void BatchSource::read_masked(int64_t first, MicrobatchParts parts, nn::Microbatch& microbatch) const {
  const auto row = [](at::Tensor& x, int b, const std::vector<int64_t>& numbers, int count) {
    const auto width = std::ssize(numbers);
    if (!x.defined()) x = at::empty({count, width}, at::kLong);
    std::ranges::copy(numbers, x.mutable_data_ptr<int64_t>() + b * width);
  };
  for (int b = 0; b < microbatch_; ++b) {
    const data::MaskedSequence sequence = masked_->read(first + b);
    if (parts.tokens) row(microbatch.tokens_bt, b, sequence.tokens, microbatch_);
    if (parts.targets) row(microbatch.rows_bj, b, sequence.rows, microbatch_);
    if (parts.targets) row(microbatch.targets_bt, b, sequence.targets, microbatch_);
    if (by_document_) row(microbatch.documents_bt, b, sequence.documents, microbatch_);
  }
}

// Returns the number of targets of `count` samples from `first` on. Every microbatch of a step asks for those of the
// same samples, whose lengths are looked up once.
double BatchSource::targets_of(int64_t first, int64_t count) const {
  const std::pair samples(first, count);
  if (last_targets_.first != samples)
    last_targets_ = {samples, static_cast<double>(masked_->num_targets(first, count))};
  return last_targets_.second;
}

double BatchSource::targets_in_evaluation(int64_t sequences, int64_t count) const {
  if (!padded_) return 0;
  return targets_of(0, sequences) / static_cast<double>(sequences) * static_cast<double>(count);
}

int64_t BatchSource::num_before(int64_t count, int64_t step, int micro) const {
  return std::clamp<int64_t>(count - first_of(step, micro), 0, microbatch_);
}

at::Tensor BatchSource::tokens(int64_t first_sample, int64_t first_token) const {
  auto tokens_bt = at::empty({microbatch_, context_}, at::kLong);
  for (int b = 0; b < microbatch_; ++b) {
    int64_t* row = tokens_bt.mutable_data_ptr<int64_t>() + int64_t{b} * context_;
    sampler_->read(first_sample + b, {row, static_cast<size_t>(context_)}, first_token);
  }
  return tokens_bt;
}

at::Tensor BatchSource::documents(int64_t first) const {
  auto documents_bt = at::empty({microbatch_, context_}, at::kLong);
  for (int b = 0; b < microbatch_; ++b) {
    int64_t* row = documents_bt.mutable_data_ptr<int64_t>() + int64_t{b} * context_;
    sampler_->read_documents(first + b, {row, static_cast<size_t>(context_)});
  }
  return documents_bt;
}

uint64_t BatchSource::hash(int64_t step, int micro, const nn::Microbatch& read) const {
  const int64_t first = first_of(step, micro);
  uint64_t sum = 0;
  for (const int part : {0, 1}) {
    const at::Tensor& part_bt = part == 0 ? read.tokens_bt : read.targets_bt;
    for (int64_t b = 0; part_bt.defined() && b < microbatch_; ++b) {
      const int64_t width = part_bt.size(1);
      const int64_t* row = part_bt.const_data_ptr<int64_t>() + b * width;
      sum += data::sample_hash(2 * (first + b) + part, {row, static_cast<size_t>(width)});
    }
  }
  return sum;
}

}  // namespace braid::train
