// The documents of a run as one array of tokens, split into training and validation parts.
// It knows no samples and no batches.
#pragma once

#include <cstdint>
#include <vector>

#include "braid/data/tokenizer.h"
#include "braid/spec/run_spec.h"

namespace braid {

struct TextCorpus {
  std::vector<uint16_t> train;       // documents one after another, each ended by the end-of-text token
  std::vector<uint16_t> validation;  // whole documents, chosen by the hash of their index
  int64_t num_documents = 0;
};

// Reads every file of `spec.paths` (order and choice: document_list.h). About `spec.validation_fraction` of the bytes
// are held out, as whole documents; of a single document, its last part is. Throws ConfigError naming every path that
// is missing, unreadable, empty or without a match, IoError when a file fails or changes while it is read.
TextCorpus read_corpus(const DataSpec& spec, const Tokenizer& tokenizer);

// In nats per token: the cross-entropy of a model that knows only the bigram counts of `train`,
// measured on `validation` with add-one smoothing over `vocab`. The bar a trained model must beat. NaN when nothing was
// held out.
double bigram_entropy(const TextCorpus& corpus, int vocab);

}  // namespace braid
