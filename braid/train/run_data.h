// The data of a run: what its paths and its tokenizer are, then its tokens.
// It knows no samples.
#pragma once

#include <memory>
#include <vector>

#include "braid/base/errors.h"
#include "braid/data/corpus.h"
#include "braid/data/prepared_corpus.h"
#include "braid/data/tokenizer.h"
#include "braid/spec/run_spec.h"

namespace braid {

class RunData {
 public:
  // Opens the tokenizer, or the manifests of prepared data; reads no text yet. Data prepared with another tokenizer
  // than data.tokenizer are refused; the default "bytes" stands for the one they were prepared with, and then none is
  // loaded. Throws ConfigError and IoError.
  explicit RunData(const DataSpec& spec);

  // `spec` with vocabulary and tokenizer filled in.
  RunSpec resolved(RunSpec spec) const;
  // Of a resolved spec. Throws ConfigError with every problem of the data: options that do not fit how they were
  // prepared, a model.vocab without room for the tokenizer's, a part that does not fill one sample of model.context;
  // IoError.
  Corpus corpus(const RunSpec& spec) const;

 private:
  std::vector<Problem> problems(const RunSpec& spec) const;

  std::vector<PreparedFolder> folders_;   // empty: data.paths are text
  std::unique_ptr<Tokenizer> tokenizer_;  // of text
  std::string tokenizer_name_;
  int64_t vocab_ = 0;
};

}  // namespace braid
