// The number of bytes of the text that evaluations predict, to convert nats per token to nats per byte.
#pragma once

#include <optional>
#include <vector>

#include "braid/data/corpus.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

class EvaluatedText {
 public:
  // `token_bytes` has the number of bytes of text of every token of the tokenizer. It is 0 for tokens without text,
  // such as end-of-text. `spec` and `validation` outlive this.
  EvaluatedText(const RunSpec& spec, const data::Blend& validation, std::vector<int> token_bytes);

  // Returns the mean number of bytes of the tokens that Trainer::evaluate() predicts. A token without text counts as a
  // token with no bytes, since predicting the end of a document also costs nats. Returns NaN if no predicted token has
  // text, and for a masked family, whose loss is not a code length of the text. The first call reads the samples of one
  // evaluation. Throws IoError. Called by one thread at a time.
  double bytes_per_token();

 private:
  const RunSpec& spec_;
  const data::Blend& validation_;
  std::vector<int> token_bytes_;
  std::optional<double> bytes_per_token_;
};

}  // namespace braid::train
