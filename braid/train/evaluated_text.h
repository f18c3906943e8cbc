// The text that evaluations measure on, in bytes: what makes nats per byte of nats per token.
#pragma once

#include <optional>
#include <vector>

#include "braid/data/corpus.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

class EvaluatedText {
 public:
  // `token_bytes` has for every token of the tokenizer the bytes of text that it stands for, and 0 for those that give
  // no text, such as the one that ends a document. `spec` and `validation` outlive this.
  EvaluatedText(const RunSpec& spec, const data::Blend& validation, std::vector<int> token_bytes);

  // Bytes of all tokens that Trainer::evaluate() has predicted, over their number. A token without text counts as a
  // token with no bytes: predicting the end of a document costs nats and is no text. NaN where no predicted token has
  // any. Reads the samples of one evaluation when it is first called. Throws IoError. One thread at a time.
  double bytes_per_token();

 private:
  const RunSpec& spec_;
  const data::Blend& validation_;
  std::vector<int> token_bytes_;
  std::optional<double> bytes_per_token_;
};

}  // namespace braid::train
