// The data of a run: what its paths and its tokenizer are, then its tokens.
// It knows no samples.
#pragma once

#include <memory>

#include "braid/data/corpus.h"
#include "braid/data/tokenizer.h"
#include "braid/spec/run_spec.h"

namespace braid {

class RunData {
 public:
  // Opens the tokenizer and reads no text yet. Throws ConfigError.
  explicit RunData(const DataSpec& spec);

  // `spec` with the vocabulary filled in.
  RunSpec resolved(RunSpec spec) const;
  // Of a resolved spec. Throws ConfigError when model.vocab has no room for the tokenizer's, with every problem of the
  // data, and when a part of it does not fill one sample of model.context; IoError.
  Corpus corpus(const RunSpec& spec) const;

 private:
  void refuse_small_vocabulary(const RunSpec& spec) const;

  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace braid
