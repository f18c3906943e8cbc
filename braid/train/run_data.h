// The data of a run: what its paths and its tokenizer are, then its tokens.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/communicator.h"
#include "braid/data/corpus.h"
#include "braid/data/prepared_corpus.h"
#include "braid/spec/run_spec.h"
#include "braid/tokenize/tokenizer.h"

namespace braid::train {

// Requires that all hosts of a run have the same data and weights at the paths in its configuration.

// Collective. Throws ConfigError, the same on all ranks, about each key whose files are others to a rank than to
// rank 0: data.paths, data.tokenizer, train.init, train.resume.
void require_same_inputs(const RunSpec& spec, const data::CorpusOrigin& origin, Communicator& world);

class RunData {
 public:
  // Opens the tokenizer, or the manifests of prepared data; reads no text yet. `tokenizer_place`, when given, is where
  // the files of data.tokenizer are. Data prepared with another tokenizer are refused; the default "bytes" stands for
  // the one they were prepared with, whose files must then be those in their folder. Throws ConfigError and IoError.
  explicit RunData(const DataSpec& spec, const std::string& tokenizer_place = "");

  // `spec` with vocabulary and tokenizer filled in.
  RunSpec resolved(RunSpec spec) const;
  // Returns the corpus of a resolved spec, with its origin. Throws ConfigError with every problem of the data: options
  // that do not fit its preparation, a model.vocab smaller than the tokenizer's, training data with a part shorter than
  // one sample of model.context, held-out data with no part as long; IoError.
  data::Corpus corpus(const RunSpec& spec) const;
  // For every token of the tokenizer the bytes of text that it stands for; 0 for those that give no text. Throws
  // ConfigError and IoError when the tokenizer of prepared data cannot be opened.
  std::vector<int> token_bytes() const;

 private:
  void open_prepared(const DataSpec& spec, const std::string& tokenizer_place);
  std::vector<Problem> problems(const RunSpec& spec) const;

  std::vector<data::PreparedFolder> folders_;       // empty: data.paths are text
  std::unique_ptr<tokenize::Tokenizer> tokenizer_;  // of text
  data::TokenizerMark mark_;
  std::string tokenizer_place_;                         // "bytes", or where its files are
  std::map<std::string, std::string> tokenizer_files_;  // as they were when this was made
};

}  // namespace braid::train
