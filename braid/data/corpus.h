// The training and validation tokens of a run, with the fraction of samples that each part contributes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "braid/base/digest.h"
#include "braid/data/token_source.h"

namespace braid::data {

struct BlendPart {
  Tokens tokens;
  double weight = 1;  // of the samples, against the other parts' weights
};
using Blend = std::vector<BlendPart>;

int64_t num_tokens(const Blend& blend);

// The sources of a corpus, identified by content and not by place: a resumed run must have the same.
struct CorpusOrigin {
  std::vector<ContentMark> sources = {};  // the token files, or all of the text as one; empty: made in memory
  // Returns the digest of a source's content by another algorithm, for comparison with a mark that has that kind. Reads
  // all of the source. Throws IoError. Empty: digests of all versions are of one kind.
  std::function<NamedDigest(size_t source, DigestKind kind)> digest_as = nullptr;
  uint64_t tokenizer = 0;                                   // tokenizer_hash(); 0: nobody knows
  std::map<std::string, std::string> tokenizer_files = {};  // tokenizer_copy()
};

// The marks of `origin`, to be compared with those that were `saved`: where one differs from the saved one in its place
// in nothing but the kind of its digest, its content is digested by the saved kind. Throws IoError.
std::vector<ContentMark> marks_like(const std::vector<ContentMark>& saved, const CorpusOrigin& origin);

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

}  // namespace braid::data
