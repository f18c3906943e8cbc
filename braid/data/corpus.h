// What a run learns from and what it is measured on: tokens with the share of samples each part of them gives.
// It knows neither where the tokens lie nor how they were made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braid/base/content_mark.h"
#include "braid/data/token_source.h"

namespace braid {

struct BlendPart {
  Tokens tokens;
  double weight = 1;  // of the samples, against the other parts' weights
};
using Blend = std::vector<BlendPart>;

int64_t num_tokens(const Blend& blend);

// What a corpus was made from, told by content and not by place: a run that goes on must go on with the same.
struct CorpusOrigin {
  std::vector<ContentMark> sources = {};  // the token files, or all of the text as one; empty: made in memory
  uint64_t tokenizer = 0;                 // tokenizer_hash(); 0: nobody knows
  std::map<std::string, std::string> tokenizer_files = {};  // tokenizer_copy()
};

struct Corpus {
  Blend train;
  Blend validation;  // empty: nothing is held out
  int64_t num_documents = 0;
  CorpusOrigin origin = {};
  std::vector<std::string> choices = {};  // sentences about what was left out, for the user to hear once
};

// In nats per token: the cross-entropy of a model that knows only the bigram counts of `train`, measured on
// `validation` with add-one smoothing over `vocab`. The bar a trained model must beat. NaN when nothing was held out.
// Of large parts, runs of tokens spread evenly over them are counted: at most 2^24 tokens to learn from and 2^20 to
// measure on. Parts of a blend count by their weights. Memory: the pairs of the tokens measured on, and `vocab` counts.
double bigram_entropy(const Corpus& corpus, int64_t vocab);

}  // namespace braid
