// The WordPiece trainer finds the tokens that the reference finds.
#include "braid/tokenize/wordpiece_trainer.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/tokenize/wordpiece_file.h"
#include "tests/support/scratch_folder.h"
#include "tests/tokenize/bpe_golden.h"

namespace braid::tokenize::wordpiece_trainer_test {
namespace {

using Strings = std::vector<std::string>;

WordPieceModel trained(const WordPieceTraining& training, const Strings& texts) {
  PieceCounts counts(std::make_unique<BertPieces>(training.normalizer));
  for (const auto& text : texts) counts.add(text);
  return train_wordpiece(training, counts);
}

Strings spellings(const WordPieceModel& model, size_t first) {
  Strings all;
  for (size_t id = first; id < model.tokens.size(); ++id) all.push_back(model.tokens[id].spelling);
  return all;
}

// Words over five letters whose pairs have different counts, so that no order of equal pairs matters.
Strings words_without_equal_pairs() {
  const Strings letters = {"a", "b", "c", "d", "\u00e9"};
  std::string text;
  for (int i = 0; i < 150; ++i) {
    int x = (i * 7919 + 13) % 100003;
    std::string word;
    for (int left = 3 + x % 4; left > 0; --left, x /= 5) word += letters[static_cast<size_t>(x % 5)];
    for (int n = 1 + i * i * 31 % 997; n > 0; --n) text += word + " ";
  }
  return {text};
}

constexpr BertRules kCased{true, true, false, false};

// Expected tokens: WordPieceTrainer of tokenizers 0.23.3, min_frequency=2 and limit_alphabet=3.
TEST(WordPieceTrainer, FindsTheReferencesTokens) {
  const WordPieceModel model = trained({.vocab = 60, .normalizer = kCased}, words_without_equal_pairs());
  EXPECT_EQ(spellings(model, 0),
            (Strings{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",     "b",     "c",    "d",      "é",
                     "##a",   "##b",   "##c",   "##d",   "##é",    "##éa",  "##da",  "##éc", "##éb",   "##aa",
                     "##db",  "##dc",  "éb",    "##ac",  "ac",     "##éé",  "##ab",  "##éd", "##ca",   "db",
                     "ca",    "##cd",  "ad",    "##cc",  "##éaé",  "éa",    "bd",    "bdc",  "da",     "##dad",
                     "éab",   "cé",    "##cb",  "daa",   "bda",    "céc",   "##aab", "béc",  "déb",    "écd",
                     "dac",   "##dba", "##aé",  "##dd",  "béé",    "##dcd", "##éab", "##ad", "##éaad", "déc"}));
  const WordPieceModel limited =
      trained({.vocab = 60, .max_characters = 3, .normalizer = kCased}, words_without_equal_pairs());
  EXPECT_EQ(
      spellings(limited, 5),
      (Strings{"a",    "d",      "é",     "##a",   "##d",   "##é",  "##éa",  "##da",  "##éé",    "da",    "éa",
               "##dé", "##dd",   "##éaa", "##éd",  "dé",    "adé",  "##éaé", "ada",   "##aa",    "##éda", "aéaa",
               "édd",  "##ada",  "##aé",  "éé",    "éad",   "aé",   "##dda", "##aéa", "##éad",   "##ééé", "add",
               "éd",   "adadda", "daéaé", "ééaa",  "ééaad", "éadd", "daaé",  "##daé", "déaa",    "aééa",  "##éaaa",
               "éda",  "édad",   "daé",   "##édd", "dada",  "aa",   "éaé",   "##déé", "##déééa", "éaéé",  "déd"}));
}

TEST(WordPieceTrainer, TextIsNormalizedAndItsOrderDoesNotMatter) {
  const Strings texts = {"Caf\u00e9 CAFE\u0301 cafe", "\u6f22\u5b57caf\u00e9", not_utf8(), "unnew (new) New."};
  const WordPieceModel forth = trained({.vocab = 300, .min_frequency = 1}, texts);
  const WordPieceModel back = trained({.vocab = 300, .min_frequency = 1}, {texts.rbegin(), texts.rend()});
  EXPECT_EQ(forth.tokens, back.tokens);
  const Strings tokens = spellings(forth, 0);
  for (const char* token : {"cafe", "new", "unnew", "\u6f22", "(", "."}) {
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), token), 1) << token;
  }
  for (const char* token : {"caf\u00e9", "New", "\u6f22\u5b57", "new)"}) {
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), token), 0) << token;
  }
}

TEST(WordPieceTrainer, SpecialTokensComeFirstAndCountOnce) {
  WordPieceTraining training{.vocab = 12, .min_frequency = 1};
  training.special_tokens.emplace_back("ab");
  const WordPieceModel model = trained(training, {"ab ab"});
  EXPECT_EQ(spellings(model, 5), (Strings{"ab", "a", "b", "##b"}));
  EXPECT_EQ(model.tokens[5].kind, TokenKind::Special);
  EXPECT_EQ(model.unknown, 1);
  EXPECT_EQ(model.end_of_text, 3);
  EXPECT_EQ(wordpiece_tokenizer(model)->encode("ab"), (std::vector<int>{6, 8}));
}

TEST(WordPieceTrainer, AVocabularyTooSmallForTheCharactersIsRefused) {
  EXPECT_EQ(trained({.vocab = 10}, {"abc"}).tokens.size(), 10u);
  try {
    trained({.vocab = 9}, {"abc cab"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems().at(0).key, "vocab");
    EXPECT_EQ(error.problems().at(0).nearest, "11");
  }
  EXPECT_EQ(trained({.vocab = 7}, {}).tokens.size(), 5u);
}

class WordPieceTrainerFile : public ScratchFolder {};

TEST_F(WordPieceTrainerFile, IsReadAsTheSameTokenizer) {
  PieceCounts counts(std::make_unique<BertPieces>(BertRules()));
  counts.add_file(data_file("bpe_text.txt"));
  const WordPieceModel model = train_wordpiece({.vocab = 500}, counts);
  EXPECT_EQ(model.tokens.size(), 500u);
  write(path("tokenizer.json"), wordpiece_json(model));
  const auto read = make_tokenizer(path("tokenizer.json")), made = wordpiece_tokenizer(model);
  EXPECT_EQ(read->end_of_text(), 3);
  const std::string text = content(data_file("bpe_text.txt"));
  EXPECT_EQ(read->encode(text), made->encode(text));
  EXPECT_EQ(read->decode_text(read->encode("The stranded  newer text.")), "the stranded newer text.");
}

}  // namespace
}  // namespace braid::tokenize::wordpiece_trainer_test
