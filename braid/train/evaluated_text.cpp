// Adds up the bytes of the targets of every sample, by a table of bytes per token.
#include "braid/train/evaluated_text.h"

#include <limits>

#include "braid/base/errors.h"
#include "braid/data/sampler.h"
#include "braid/spec/masking.h"
#include "braid/train/batch_source.h"

namespace braid::train {

EvaluatedText::EvaluatedText(const RunSpec& spec, const data::Blend& validation, std::vector<int> token_bytes)
    : spec_(spec), validation_(validation), token_bytes_(std::move(token_bytes)) {}

double EvaluatedText::bytes_per_token() {
  if (spec::is_masked(spec_.model)) return std::numeric_limits<double>::quiet_NaN();
  if (bytes_per_token_) return *bytes_per_token_;
  const data::Sampler sampler(validation_, spec_.model.context, evaluation_order());
  const int64_t num_samples = spec_.train.eval_sequences;
  std::vector<int64_t> targets(static_cast<size_t>(spec_.model.context));
  int64_t bytes = 0;
  for (int64_t sample = 0; sample < num_samples; ++sample) {
    sampler.read(sample, targets, 1);
    for (const int64_t token : targets) bytes += token_bytes_.at(static_cast<size_t>(token));
  }
  const double tokens = static_cast<double>(num_samples) * spec_.model.context;
  bytes_per_token_ = bytes > 0 ? static_cast<double>(bytes) / tokens : std::numeric_limits<double>::quiet_NaN();
  return *bytes_per_token_;
}

}  // namespace braid::train
