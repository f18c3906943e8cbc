// braid data train-wordpiece: learns a WordPiece vocabulary from text files and writes a tokenizer.json.
#include <algorithm>
#include <optional>

#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/vocabulary_training.h"
#include "braid/tokenize/wordpiece_file.h"
#include "braid/tokenize/wordpiece_trainer.h"

namespace braid::cli {
namespace {

struct WordPieceRequest {
  VocabularyRequest vocabulary;
  tokenize::WordPieceTraining training;
};

void add_special_tokens(const std::vector<std::string>& more, std::vector<std::string>& tokens,
                        std::vector<Problem>& problems) {
  for (const auto& token : more) {
    const bool is_there = std::find(tokens.begin(), tokens.end(), token) != tokens.end();
    if (token.empty() || is_there) {
      problems.push_back({"--special", token, is_there ? "is a special token already" : "must not be empty", ""});
    } else {
      tokens.push_back(token);
    }
  }
}

std::optional<WordPieceRequest> read_wordpiece_request(const Words& words) {
  CLI::App app("Learns a WordPiece vocabulary, as BERT has it, from text and writes DIR/tokenizer.json.",
               "braid data train-wordpiece");
  VocabularyOptions options;
  WordPieceRequest request;
  tokenize::WordPieceTraining& training = request.training;
  std::vector<std::string> special;
  std::string alphabet;
  bool is_cased = false;
  add_vocabulary_options(app, options, "tokens to have, special tokens and characters included");
  app.add_flag("--cased", is_cased, "keep upper case and accents");
  app.add_option("--special", special,
                 cat("a special token after ", joined(training.special_tokens), "; may be repeated"))
      ->allow_extra_args(false);
  app.add_option("--alphabet", alphabet, cat("most characters to have as tokens (", training.max_characters, ")"));
  if (parse_words(app, words)) return std::nullopt;
  std::vector<Problem> problems;
  add_special_tokens(special, training.special_tokens, problems);
  const auto least = static_cast<int64_t>(training.special_tokens.size()) + 1;
  request.vocabulary = read_vocabulary_request(app, options, least, problems);
  if (!alphabet.empty()) {
    training.max_characters = static_cast<size_t>(whole_number_of("--alphabet", alphabet, {1, 0x110000}, problems));
  }
  throw_problems(std::move(problems));
  training.vocab = static_cast<size_t>(request.vocabulary.vocab);
  training.min_frequency = request.vocabulary.min_frequency;
  training.normalizer.lowercase = training.normalizer.strip_accents = !is_cased;
  return request;
}

tokenize::WordPieceModel learned_model(const WordPieceRequest& request, const tokenize::PieceCounts& counts,
                                       ProgressLine& line) {
  try {
    return tokenize::train_wordpiece(request.training, counts, [&](int tokens) {
      line.show(cat("merging  ", tokens, " of ", counted(request.training.vocab, "token")));
    });
  } catch (const ConfigError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) {
      if (problem.key == "vocab")
        problem = {"--vocab", problem.value, problem.rule + "; or give a lower --alphabet", problem.nearest};
    }
    throw ConfigError(std::move(problems));
  }
}

}  // namespace

int train_wordpiece_command(const Words& words) {
  const auto request = read_wordpiece_request(words);
  if (!request) return 0;
  ProgressLine line;
  const auto pieces =
      counted_pieces(request->vocabulary, std::make_unique<tokenize::BertPieces>(request->training.normalizer), line);
  const tokenize::WordPieceModel model = learned_model(*request, pieces.counts, line);
  line.end();
  write_vocabulary(request->vocabulary, pieces,
                   {tokenize::wordpiece_json(model), model.tokens.size(), counted(model.tokens.size(), "token")});
  return 0;
}

}  // namespace braid::cli
