// The data of a run: opens its tokenizer or its prepared folders, then reads its tokens.
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

// Throws ConfigError on all ranks if the files of a key on some rank differ from those on rank 0. Compares data.paths,
// data.tokenizer, train.init and train.resume, and names each key that differs. Collective.
void require_same_inputs(const RunSpec& spec, const data::CorpusOrigin& origin, Communicator& world);

class RunData {
 public:
  // Opens the tokenizer, or the manifests of prepared data; reads no text yet. `tokenizer_place` is the folder with the
  // files of data.tokenizer; empty: data.tokenizer itself. Throws ConfigError if data were prepared with another
  // tokenizer. For prepared data, the default "bytes" stands for their own tokenizer, whose files in their folder must
  // be the original ones. Throws ConfigError and IoError.
  explicit RunData(const DataSpec& spec, const std::string& tokenizer_place = "");

  // Returns `spec` with vocabulary and tokenizer filled in.
  RunSpec resolved(RunSpec spec) const;
  // Returns the corpus of a resolved spec, with its origin. Throws IoError, and ConfigError with the problems of the
  // data:
  //   * options that do not fit the preparation of the data;
  //   * a model.vocab smaller than the tokenizer's;
  //   * a part of the training data that is shorter than a sample of model.context;
  //   * held-out data in which all parts are shorter than a sample;
  //   * prepared data that hold nothing out, with train.eval_every.
  data::Corpus corpus(const RunSpec& spec) const;
  // Returns the number of bytes of text of every token of the tokenizer; 0 for tokens without text. Throws ConfigError
  // and IoError if the tokenizer of prepared data cannot be opened.
  std::vector<int> token_bytes() const;

 private:
  data::MaskTokens mask_tokens() const;
  void open_prepared(const DataSpec& spec, const std::string& tokenizer_place);
  std::vector<Problem> problems(const RunSpec& spec) const;

  std::vector<data::PreparedFolder> folders_;       // empty: data.paths are text
  std::unique_ptr<tokenize::Tokenizer> tokenizer_;  // if data.paths are text; else null
  data::TokenizerMark mark_;
  std::string tokenizer_place_;                         // "bytes", or the folder with its files
  std::map<std::string, std::string> tokenizer_files_;  // a copy, made by the constructor
};

}  // namespace braid::train
