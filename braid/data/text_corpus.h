// The documents of a run as one array of tokens, split into training and validation parts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/data/tokenizer.h"
#include "braid/spec/run_spec.h"

namespace braid {

struct TextCorpus {
  std::vector<uint16_t> train;       // documents one after another, each ended by the end-of-text token
  std::vector<uint16_t> validation;  // whole documents, chosen by the hash of their index
  int64_t num_documents = 0;
};

// Reads every file of `spec.paths` (folders recursively, sorted by path, filtered by `include`). Throws ConfigError when
// nothing is there or all of it is empty, IoError when a file cannot be read.
TextCorpus read_corpus(const DataSpec& spec, const Tokenizer& tokenizer);

// In nats per token: the cross-entropy of a model that knows only the bigram counts of `train`,
// measured on `validation` with add-one smoothing over `vocab`. The bar a trained model must beat.
double bigram_entropy(const TextCorpus& corpus, int vocab);

}  // namespace braid
