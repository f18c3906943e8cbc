// The training and validation tokens of a run, and the fraction of samples that each part contributes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "braid/base/digest.h"
#include "braid/data/mask_tokens.h"
#include "braid/data/token_source.h"

namespace braid::data {

struct BlendPart {
  Tokens tokens;
  double weight = 1;  // weight of this part's samples, relative to the other parts' weights
};
using Blend = std::vector<BlendPart>;

int64_t num_tokens(const Blend& blend);

// The sources of a corpus, identified by content, not by location. A resumed run must have the same sources.
struct CorpusOrigin {
  std::vector<ContentMark> sources = {};  // the token files, or one mark for all of the text; empty: made in memory
  // Returns the digest of a source's content by the algorithm `kind`, for comparison with a mark of that kind. Reads
  // the whole source. Throws IoError. Empty if all versions use one kind of digest.
  std::function<NamedDigest(size_t source, DigestKind kind)> digest_as = nullptr;
  uint64_t tokenizer = 0;                                   // result of tokenizer_hash(); 0: unknown
  std::map<std::string, std::string> tokenizer_files = {};  // result of tokenizer_copy()
};

// Returns the marks of `origin` for comparison with `saved` marks. If a mark differs from the saved one at its index
// only in the kind of its digest, its content is digested again by the saved kind. Throws IoError.
std::vector<ContentMark> marks_like(const std::vector<ContentMark>& saved, const CorpusOrigin& origin);

struct Corpus {
  Blend train;
  Blend validation;  // empty: nothing is held out
  int64_t num_documents = 0;
  CorpusOrigin origin = {};
  std::optional<MaskTokens> mask_tokens = {};  // for a masked family
  std::vector<std::string> choices = {};       // sentences about what was left out, to be shown to the user once
};

// Returns the cross-entropy on `validation`, in nats per token, of a bigram model: the bigram counts of `train` with
// add-one smoothing over `vocab`. A trained model must be better. Returns NaN if nothing was held out. Counts at most
// 2^24 tokens of `train`, and measures at most 2^20 of `validation`. If there are more, it takes runs of tokens that
// are spread evenly. Parts of a blend count by their weights. Memory: the pairs of the measured tokens, and `vocab`
// counts.
double bigram_entropy(const Corpus& corpus, int64_t vocab);

}  // namespace braid::data
