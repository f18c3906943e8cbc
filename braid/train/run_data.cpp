// Judges the data against the run. Reading is the data room's.
#include "braid/train/run_data.h"

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/data/text_corpus.h"
#include "braid/data/tokenizer_identity.h"

namespace braid {
namespace {

// A tokenizer named for data that are tokens already.
void refuse_other_tokenizer(const DataSpec& spec, const PreparedFolder& folder) {
  const auto given = make_tokenizer(spec.tokenizer);
  const auto& mark = folder.manifest.tokenizer;
  if (tokenizer_identity(spec.tokenizer) == mark.identity && given->vocab() == mark.vocab &&
      given->end_of_text() == mark.end_of_text) {
    return;
  }
  throw ConfigError(
      {{"data.tokenizer", spec.tokenizer,
        cat("must be left out, or the tokenizer that ", folder.path, " was prepared with"), tokenizer_name(folder)}});
}

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
  if (!found.empty()) throw ConfigError(std::move(found));
}

}  // namespace

RunData::RunData(const DataSpec& spec) : folders_(prepared_folders(spec.paths)), tokenizer_name_(spec.tokenizer) {
  if (folders_.empty()) {
    tokenizer_ = make_tokenizer(spec.tokenizer);
    vocab_ = tokenizer_->vocab();
    return;
  }
  vocab_ = folders_[0].manifest.tokenizer.vocab;
  if (spec.tokenizer == DataSpec().tokenizer) {
    tokenizer_name_ = tokenizer_name(folders_[0]);
  } else {
    refuse_other_tokenizer(spec, folders_[0]);
  }
}

RunSpec RunData::resolved(RunSpec spec) const {
  spec.data.tokenizer = tokenizer_name_;
  if (spec.model.vocab == 0) spec.model.vocab = static_cast<int>(vocab_);
  return spec;
}

std::vector<Problem> RunData::problems(const RunSpec& spec) const {
  std::vector<Problem> found;
  const DataSpec& data = spec.data;
  if (spec.model.vocab < vocab_) {
    found.push_back({"model.vocab", cat(spec.model.vocab),
                     cat("must be 0 or at least ", vocab_, ", the tokens of data.tokenizer (\"", data.tokenizer, "\")"),
                     cat(vocab_)});
  }
  if (folders_.empty() && !data.weights.empty()) {
    found.push_back(
        {"data.weights", "", "must be empty unless data.paths are prepared data (braid data prepare)", "[]"});
  }
  if (!folders_.empty() && !data.include.empty()) {
    found.push_back({"data.include", joined(data.include), "must be empty for prepared data", "[]"});
  }
  for (const auto& [path, manifest] : folders_) {
    const double fraction = data.validation_fraction, prepared = manifest.validation_fraction;
    if (fraction == prepared || fraction == 0 || fraction == DataSpec().validation_fraction) continue;
    found.push_back({"data.validation_fraction", exact(fraction),
                     cat("must be left out, 0, or the ", exact(prepared), " that ", path, " was prepared with"),
                     exact(prepared)});
  }
  return found;
}

Corpus RunData::corpus(const RunSpec& spec) const {
  if (auto found = problems(spec); !found.empty()) throw ConfigError(std::move(found));
  Corpus corpus = folders_.empty() ? read_text(spec.data, *tokenizer_) : prepared_corpus(folders_, spec.data.weights);
  if (spec.data.validation_fraction == 0) {
    corpus.validation.clear();
  } else if (folders_.empty() && corpus.validation.empty()) {
    corpus.validation = {{std::make_shared<MemoryTokens>(vocab_), 1}};  // refused below
  }
  if (!folders_.empty() && spec.train.eval_every > 0 && corpus.validation.empty()) {
    throw ConfigError({{"train.eval_every", cat(spec.train.eval_every), "must be 0: the data hold nothing out", "0"}});
  }
  refuse_short(spec, corpus);
  return corpus;
}

}  // namespace braid
