// Checks the data against the run. The components data and tokenize read it.
#include "braid/train/run_data.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "braid/base/checked_file.h"
#include "braid/base/digest.h"
#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/exchange.h"
#include "braid/comm/agree.h"
#include "braid/spec/fields.h"
#include "braid/spec/masking.h"
#include "braid/tokenize/text_corpus.h"
#include "braid/tokenize/tokenizer_identity.h"

namespace braid::train {
namespace {

// Returns a text that identifies the weights. A checkpoint's manifest has the digests of all its files. A Hugging Face
// directory has no digests, so its config.json and the size of its weights identify it.
std::string weights_mark(const std::string& directory) {
  if (directory.empty()) return "";
  constexpr int64_t kMostBytes = 1'000'000'000;  // the limit of a manifest too
  std::string mark;
  for (const char* name : {"manifest.json", "config.json"}) {
    const std::string path = cat(directory, "/", name);
    const std::string content = path_kind(path) == PathKind::Nothing ? "" : file_content(path, kMostBytes);
    Digest digest(DigestKind::Xxh3);
    digest.add(std::as_bytes(std::span(content)));
    mark += text(digest.named()) + " ";
  }
  std::error_code none;
  const auto bytes = std::filesystem::file_size(std::filesystem::path(directory) / "model.safetensors", none);
  return cat(mark, none ? 0 : bytes);
}

struct Input {
  const char* key;
  std::string mark;
};

std::vector<Input> inputs_of(const RunSpec& spec, const data::CorpusOrigin& origin) {
  std::vector<std::string> sources;
  for (const ContentMark& source : origin.sources) sources.push_back(text(source.digest));
  return {{"data.paths", joined(sources)},
          {"data.tokenizer", cat(origin.tokenizer)},
          {"train.init", weights_mark(spec.train.init)},
          {"train.resume", weights_mark(spec.train.resume)}};
}

}  // namespace

void require_same_inputs(const RunSpec& spec, const data::CorpusOrigin& origin, Communicator& world) {
  std::vector<Problem> problems;
  const auto hosts = comm::gather_texts(world, "hosts", host_name());
  for (const auto& [key, mark] : inputs_of(spec, origin)) {
    const auto all = comm::gather_texts(world, key, mark);
    std::vector<std::string> others;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank] != all[0]) others.push_back(cat("rank ", rank, " on ", hosts[rank]));
    }
    if (!others.empty()) {
      problems.push_back(
          {key, "", cat("must name the same files on all hosts; those of ", joined(others), " are others"), ""});
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

namespace {

// `place` is the path of the files of the tokenizer `name`.
data::TokenizerMark mark_of(const tokenize::Tokenizer& tokenizer, const std::string& name, const std::string& place) {
  return {name, tokenize::tokenizer_identity(place), tokenizer.vocab(), tokenizer.end_of_text()};
}

// Refuses a tokenizer other than the one with which the data were prepared.
void refuse_other_tokenizer(const DataSpec& spec, const std::string& place, const data::PreparedFolder& folder) {
  const data::TokenizerMark& prepared = folder.manifest.tokenizer;
  if (mark_of(*tokenize::make_tokenizer(place), prepared.name, place) == prepared) return;
  throw ConfigError({{"data.tokenizer", spec::toml_text(spec.tokenizer),
                      cat("must be left out, or the tokenizer that ", folder.path, " was prepared with"),
                      spec::toml_text(data::tokenizer_name(folder))}});
}

constexpr const char* kFraction = "data.validation_fraction";

// Returns the rule with the files and parts that were left out, since they may be the reason for missing text.
std::string with_choices(std::string rule, const data::Corpus& corpus) {
  return corpus.choices.empty() ? rule : cat(rule, " (", joined(corpus.choices, "; "), ")");
}

void refuse_short(const RunSpec& spec, const data::Corpus& corpus) {
  std::vector<Problem> found;
  const int context = spec.model.context;
  for (const data::BlendPart& part : corpus.train) {
    const int64_t tokens = part.tokens->num_tokens();
    if (tokens > context) continue;
    const std::string rule = cat("must be less than the ", counted(tokens, "token"), " of the training text");
    found.push_back({"model.context", cat(context), with_choices(rule, corpus), tokens > 1 ? cat(tokens - 1) : ""});
  }
  int64_t most = 0;
  for (const data::BlendPart& part : corpus.validation) most = std::max(most, part.tokens->num_tokens());
  if (!corpus.validation.empty() && most <= context) {
    // Whole documents are held out, chosen by their digests. Of a few documents none may be held out.
    const std::string why =
        most > 0 ? cat("the validation text has ", counted(most, "token"), ", and model.context (", context,
                       ") must be less")
                 : cat("of ", counted(corpus.num_documents, "document"), " none is held out, since whole ones are");
    found.push_back(
        {kFraction, exact(spec.data.validation_fraction), with_choices("must be larger, or 0: " + why, corpus), "0"});
  }
  if (!found.empty()) throw ConfigError(std::move(found));
}

// Removes parts of a blend that hold out too little for one sample, if any part holds out enough. Returns a sentence
// about the removal; "" if there was none.
std::string leave_out_small_parts(const RunSpec& spec, data::Blend& validation) {
  const auto small = [&](const data::BlendPart& part) { return part.tokens->num_tokens() <= spec.model.context; };
  if (std::all_of(validation.begin(), validation.end(), small)) return "";
  const size_t all = validation.size(), left_out = std::erase_if(validation, small);
  if (left_out == 0) return "";
  return cat("validation without ", left_out, " of ", counted(all, "part"),
             " of the data, which hold out less than one sample (", counted(spec.model.context + 1, "token"), ")");
}

}  // namespace

RunData::RunData(const DataSpec& spec, const std::string& tokenizer_place)
    : folders_(data::prepared_folders(spec.paths)) {
  const std::string& place = tokenizer_place.empty() ? spec.tokenizer : tokenizer_place;
  if (!folders_.empty()) {
    open_prepared(spec, place);
    return;
  }
  tokenizer_place_ = place;
  tokenizer_ = tokenize::make_tokenizer(place);
  mark_ = mark_of(*tokenizer_, spec.tokenizer, place);
  tokenizer_files_ = tokenize::tokenizer_copy(place);
}

void RunData::open_prepared(const DataSpec& spec, const std::string& tokenizer_place) {
  const data::PreparedFolder& folder = folders_[0];
  const bool own = spec.tokenizer == DataSpec().tokenizer;
  const std::string place = own ? data::tokenizer_name(folder) : tokenizer_place;
  tokenize::require_own_tokenizer(folder);
  if (!own) refuse_other_tokenizer(spec, place, folder);
  tokenizer_place_ = place;
  mark_ = folder.manifest.tokenizer;
  mark_.name = own ? place : spec.tokenizer;
  tokenizer_files_ = tokenize::tokenizer_copy(place);
}

RunSpec RunData::resolved(RunSpec spec) const {
  spec.data.tokenizer = mark_.name;
  if (spec.model.vocab == 0) spec.model.vocab = static_cast<int>(mark_.vocab);
  return spec;
}

std::vector<Problem> RunData::problems(const RunSpec& spec) const {
  std::vector<Problem> found;
  const DataSpec& data = spec.data;
  if (spec.model.vocab < mark_.vocab) {
    found.push_back(
        {"model.vocab", cat(spec.model.vocab),
         cat("must be 0 or at least ", mark_.vocab, ", the tokens of data.tokenizer (\"", data.tokenizer, "\")"),
         cat(mark_.vocab)});
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
    found.push_back({kFraction, exact(fraction),
                     cat("must be left out, 0, or the ", exact(prepared), " that ", path, " was prepared with"),
                     exact(prepared)});
  }
  return found;
}

std::vector<int> RunData::token_bytes() const {
  const std::unique_ptr<tokenize::Tokenizer> opened = tokenizer_ ? nullptr : tokenize::make_tokenizer(tokenizer_place_);
  const tokenize::Tokenizer& tokenizer = tokenizer_ ? *tokenizer_ : *opened;
  std::vector<int> bytes;
  for (int token = 0; token < tokenizer.vocab(); ++token) {
    bytes.push_back(static_cast<int>(tokenizer.decode({token}).size()));
  }
  return bytes;
}

// Reads them from the tokenizer's files, since manifests of prepared data have the end of text alone.
data::MaskTokens RunData::mask_tokens() const {
  const auto found = (tokenizer_ ? nullptr : tokenize::make_tokenizer(tokenizer_place_));
  const auto tokens = (tokenizer_ ? *tokenizer_ : *found).mask_tokens();
  if (tokens) return *tokens;
  throw ConfigError({{"data.tokenizer", spec::toml_text(mark_.name), tokenize::kNeedsMaskTokens, ""}});
}

data::Corpus RunData::corpus(const RunSpec& spec) const {
  if (auto found = problems(spec); !found.empty()) throw ConfigError(std::move(found));
  data::Corpus corpus = folders_.empty() ? tokenize::read_text(spec.data, *tokenizer_)
                                         : data::prepared_corpus(folders_, spec.data.weights);
  if (spec.data.validation_fraction == 0) {
    corpus.validation.clear();
  } else if (folders_.empty() && corpus.validation.empty()) {
    corpus.validation = {{std::make_shared<data::MemoryTokens>(mark_.vocab), 1}};  // refuse_short() refuses it
  }
  if (!folders_.empty() && spec.train.eval_every > 0 && corpus.validation.empty()) {
    throw ConfigError({{"train.eval_every", cat(spec.train.eval_every), "must be 0: the data hold nothing out", "0"}});
  }
  const std::string left_out = leave_out_small_parts(spec, corpus.validation);
  if (!left_out.empty()) corpus.choices.push_back(left_out);
  refuse_short(spec, corpus);
  if (spec::is_masked(spec.model)) corpus.mask_tokens = mask_tokens();
  corpus.origin.tokenizer = tokenize::tokenizer_hash(mark_.identity, mark_.end_of_text);
  corpus.origin.tokenizer_files = tokenizer_files_;
  return corpus;
}

}  // namespace braid::train
