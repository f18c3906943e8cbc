// Training of WordPiece: words of the counted pieces, their characters, and merges.
#include "braid/tokenize/wordpiece_trainer.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/base/utf8.h"
#include "braid/tokenize/merge_learner.h"

namespace braid::tokenize {
namespace {

constexpr const char* kContinuation = "##";

using WordCounts = std::unordered_map<std::string, int64_t>;

WordCounts words_of(const PieceCounts& counts, const BertRules& rules) {
  WordCounts words;
  for (const auto& [piece, count] : counts.table()) {
    const std::string form = bert_form(piece, rules);
    BertWords cursor(form);
    for (auto word = cursor.next(); !word.empty(); word = cursor.next()) words[std::string(word)] += count;
  }
  return words;
}

// Calls `visit` with each character of a word. Well-formed UTF-8 orders characters by code point.
template <class Visit>
void for_characters(std::string_view word, const Visit& visit) {
  uint32_t bytes = 0;
  for (size_t at = 0; at < word.size(); at += bytes) {
    bytes = utf8_at(word, at).bytes;
    visit(std::string(word.substr(at, bytes)), at);
  }
}

// Returns the most frequent characters.
std::set<std::string> kept_characters(const WordCounts& words, size_t most) {
  std::map<std::string, int64_t> count_of;
  for (const auto& [word, count] : words) {
    for_characters(word, [&](const std::string& character, size_t) { count_of[character] += count; });
  }
  std::vector<std::pair<int64_t, std::string>> by_count;
  for (const auto& [character, count] : count_of) by_count.emplace_back(-count, character);
  std::sort(by_count.begin(), by_count.end());
  by_count.resize(std::min(by_count.size(), most));
  std::set<std::string> kept;
  for (auto& [unused, character] : by_count) kept.insert(std::move(character));
  return kept;
}

// The tokens before merges, and the words in them.
class FirstTokensOfWords {
 public:
  FirstTokensOfWords(const WordPieceTraining& training, const WordCounts& words)
      : kept_(kept_characters(words, training.max_characters)) {
    for (const auto& token : training.special_tokens) add(token);
    for (const auto& character : kept_) add(character);
    std::set<std::string> continuing;
    for (const auto& [word, unused] : words) {
      for_characters(word, [&](const std::string& character, size_t at) {
        if (at > 0 && kept_.contains(character)) continuing.insert(character);
      });
    }
    for (const auto& character : continuing) add(kContinuation + character);
  }

  const std::vector<std::string>& tokens() const { return tokens_; }

  // Returns the word without the characters that have no token.
  std::vector<uint32_t> spelled(std::string_view word) const {
    std::vector<uint32_t> ids;
    for_characters(word, [&](const std::string& character, size_t at) {
      if (kept_.contains(character)) ids.push_back(id_of_.at(at == 0 ? character : kContinuation + character));
    });
    return ids;
  }

 private:
  void add(const std::string& token) {
    if (id_of_.emplace(token, static_cast<uint32_t>(tokens_.size())).second) tokens_.push_back(token);
  }

  std::set<std::string> kept_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, uint32_t> id_of_;
};

int place_in(const std::vector<std::string>& tokens, const std::string& name) {
  const auto found = std::find(tokens.begin(), tokens.end(), name);
  check(found != tokens.end(), "special tokens include [UNK] and [SEP]");
  return static_cast<int>(found - tokens.begin());
}

}  // namespace

std::vector<std::string> WordPieceTraining::bert_special_tokens() {
  return {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
}

WordPieceModel train_wordpiece(const WordPieceTraining& training, const PieceCounts& counts,
                               const std::function<void(int)>& progress) {
  const WordCounts words = words_of(counts, training.normalizer);
  const FirstTokensOfWords first(training, words);
  if (first.tokens().size() > training.vocab) {
    throw ConfigError({{"vocab", cat(training.vocab),
                        "must be at least the number of special tokens and characters, which also count as "
                        "continuations of a word",
                        cat(first.tokens().size())}});
  }
  MergeLearner learner({training.vocab, training.min_frequency, kContinuation}, first.tokens());
  for (const auto& [word, count] : words) learner.add_word(first.spelled(word), count);
  const LearnedMerges learned = learner.learn(progress);
  WordPieceModel model;
  for (const auto& token : learned.tokens) {
    const bool special = model.tokens.size() < training.special_tokens.size();
    model.tokens.push_back({token, special ? TokenKind::Special : TokenKind::Text, !special});
  }
  model.unknown = place_in(training.special_tokens, "[UNK]");
  model.end_of_text = place_in(training.special_tokens, "[SEP]");
  model.normalizer = training.normalizer;
  return model;
}

}  // namespace braid::tokenize
