// braid data train-bpe: learns a byte-level BPE vocabulary from text files and writes a tokenizer.json.
#include <algorithm>
#include <optional>

#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/vocabulary_training.h"
#include "braid/tokenize/bpe_trainer.h"
#include "braid/tokenize/tokenizer_file.h"

namespace braid::cli {
namespace {

struct BpeRequest {
  VocabularyRequest vocabulary;
  std::string pattern = "gpt2";
};

std::optional<BpeRequest> read_bpe_request(const Words& words) {
  CLI::App app("Learns a byte-level BPE vocabulary from text and writes DIR/tokenizer.json.", "braid data train-bpe");
  VocabularyOptions options;
  BpeRequest request;
  const auto names = tokenize::pattern_names();
  add_vocabulary_options(app, options, "tokens to have, end-of-text and 256 bytes included");
  app.add_option("--pattern", request.pattern, cat("how text is cut: one of ", joined(names), " (gpt2)"));
  if (parse_words(app, words)) return std::nullopt;
  std::vector<Problem> problems;
  request.vocabulary = read_vocabulary_request(app, options, 257, problems);
  if (std::find(names.begin(), names.end(), request.pattern) == names.end()) {
    const std::string rule = cat("must be one of ", joined(names));
    problems.push_back({"--pattern", request.pattern, rule, nearest(request.pattern, names)});
  }
  throw_problems(std::move(problems));
  return request;
}

}  // namespace

int train_bpe_command(const Words& words) {
  const auto request = read_bpe_request(words);
  if (!request) return 0;
  const VocabularyRequest& vocabulary = request->vocabulary;
  ProgressLine line;
  const auto pieces = counted_pieces(vocabulary, tokenize::cut_by({{tokenize::pattern_regex(request->pattern)}}), line);
  const tokenize::BpeTraining training{vocabulary.vocab, vocabulary.min_frequency, request->pattern};
  const tokenize::BpeModel model = tokenize::train_bpe(training, pieces.counts, [&](int tokens) {
    line.show(cat("merging  ", tokens, " of ", counted(training.vocab, "token")));
  });
  line.end();
  const std::string counts =
      cat(counted(model.tokens.size(), "token"), " (", counted(model.merges.size(), "merge"), ")");
  write_vocabulary(vocabulary, pieces, {tokenize::tokenizer_json(model), model.tokens.size(), counts});
  return 0;
}

}  // namespace braid::cli
