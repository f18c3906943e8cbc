// Lists the files and the prepared data at the paths.
#include "braid/train/texts_to_measure.h"

#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/data/prepared_corpus.h"
#include "braid/tokenize/document_list.h"
#include "braid/tokenize/tokenizer_identity.h"

namespace braid::train {
namespace {

std::vector<data::Tokens> tokens_of(const tokenize::Document& file, const tokenize::ReaderOptions& reading,
                                    const tokenize::Tokenizer& tokenizer) {
  tokenize::DocumentReader reader({file}, reading);
  const auto tokens = std::make_shared<data::MemoryTokens>(tokenizer.vocab());
  while (const auto document = reader.next()) {
    tokens->add_document(tokenizer.encode(document->text), tokenizer.end_of_text());
  }
  return {tokens};
}

std::vector<data::Tokens> tokens_of(const data::Blend& blend) {
  std::vector<data::Tokens> tokens;
  for (const data::BlendPart& part : blend) tokens.push_back(part.tokens);
  return tokens;
}

// The texts found at the paths, in the order of the paths.
class TextList {
 public:
  TextList(const ModelToLoad& load, const TextLossOptions& options, const tokenize::Tokenizer& tokenizer)
      : load_(load), options_(options), tokenizer_(tokenizer) {
    for (const std::string& path : options.paths) collect(path);
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
  }
  std::vector<TextToMeasure> take() { return std::move(texts_); }

 private:
  void collect(const std::string& path) {
    try {
      data::is_prepared(path) ? add_prepared(path) : add_files(path);
    } catch (const ConfigError& error) {
      problems_.insert(problems_.end(), error.problems().begin(), error.problems().end());
    }
  }
  void add_files(const std::string& path) {
    const tokenize::DocumentList list =
        tokenize::list_documents({.paths = {path}, .include = options_.include}, options_.reading.text_field);
    if (options_.on_note && !list.passed_over.empty()) options_.on_note(tokenize::sentence(list.passed_over));
    for (const tokenize::Document& file : list.documents) {
      const auto open = [this_file = file, reading = options_.reading, &tokenizer = tokenizer_] {
        return tokens_of(this_file, reading, tokenizer);
      };
      texts_.push_back({file.path, static_cast<double>(file.bytes), open});
    }
  }
  void add_prepared(const std::string& path) {
    const data::PreparedFolder folder = data::prepared_folders({path}).at(0);
    const data::TokenizerMark& mark = folder.manifest.tokenizer;
    const uint64_t identity = tokenize::tokenizer_identity(tokenizer_place(load_, options_.tokenizer));
    if (mark.identity != identity || mark.end_of_text != tokenizer_.end_of_text()) {
      const std::string rule = cat("must be prepared with the tokenizer of ", load_.directory);
      problems_.push_back({"data.paths", path, rule, ""});
      return;
    }
    const data::Corpus corpus = data::prepared_corpus({folder}, {});
    const bool held_out = options_.half ? *options_.half == PreparedHalf::HeldOut : !corpus.validation.empty();
    if (held_out && corpus.validation.empty()) {
      problems_.push_back({"data.paths", path, "must hold something out", ""});
      return;
    }
    const data::Blend& blend = held_out ? corpus.validation : corpus.train;
    constexpr double kBytesOfToken = 4;
    texts_.push_back({cat(path, held_out ? " (held out)" : " (train)"),
                      kBytesOfToken * static_cast<double>(data::num_tokens(blend)),
                      [blend] { return tokens_of(blend); }});
  }

  const ModelToLoad& load_;
  const TextLossOptions& options_;
  const tokenize::Tokenizer& tokenizer_;
  std::vector<TextToMeasure> texts_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<TextToMeasure> texts_to_measure(const ModelToLoad& load, const TextLossOptions& options,
                                            const tokenize::Tokenizer& tokenizer) {
  return TextList(load, options, tokenizer).take();
}

}  // namespace braid::train
