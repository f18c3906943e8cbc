// Judges the data against the run. Reading is the data room's.
#include "braid/train/run_data.h"

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/data/text_corpus.h"

namespace braid {
namespace {

void refuse_short(const RunSpec& spec, const Corpus& corpus) {
  std::vector<Problem> found;
  const auto refuse = [&](const char* part, int64_t tokens) {
    if (tokens > spec.model.context) return;
    found.push_back({"model.context", cat(spec.model.context),
                     cat("must be less than the ", tokens, " tokens of the ", part, " text"),
                     tokens > 1 ? cat(tokens - 1) : ""});
  };
  for (const auto& part : corpus.train) refuse("training", part.tokens->num_tokens());
  for (const auto& part : corpus.validation) refuse("validation", part.tokens->num_tokens());
  if (spec.data.validation_fraction > 0 && corpus.validation.empty()) refuse("validation", 0);
  if (!found.empty()) throw ConfigError(std::move(found));
}

}  // namespace

RunData::RunData(const DataSpec& spec) : tokenizer_(make_tokenizer(spec.tokenizer)) {}

RunSpec RunData::resolved(RunSpec spec) const {
  if (spec.model.vocab == 0) spec.model.vocab = tokenizer_->vocab();
  return spec;
}

void RunData::refuse_small_vocabulary(const RunSpec& spec) const {
  const int vocab = tokenizer_->vocab();
  if (spec.model.vocab >= vocab) return;
  throw ConfigError(
      {{"model.vocab", cat(spec.model.vocab),
        cat("must be 0 or at least ", vocab, ", the tokens of data.tokenizer (\"", spec.data.tokenizer, "\")"),
        cat(vocab)}});
}

Corpus RunData::corpus(const RunSpec& spec) const {
  refuse_small_vocabulary(spec);
  Corpus corpus = read_text(spec.data, *tokenizer_);
  refuse_short(spec, corpus);
  return corpus;
}

}  // namespace braid
