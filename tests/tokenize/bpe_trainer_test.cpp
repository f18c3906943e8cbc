// Which merges a trainer finds, and that they are the reference's.
#include "braid/tokenize/bpe_trainer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "braid/base/errors.h"
#include "tests/tokenize/bpe_golden.h"

namespace braid::tokenize::bpe_trainer_test {
namespace {

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

BpeModel trained(const BpeTraining& training, const std::vector<std::string>& texts) {
  PieceCounts counts({{pattern_regex(training.pattern)}});
  for (const auto& text : texts) counts.add(text);
  return train_bpe(training, counts);
}

// "left+right" of every merge.
std::vector<std::string> merges(const BpeModel& model) {
  std::vector<std::string> all;
  for (const BpeMerge& merge : model.merges) {
    all.push_back(model.tokens[merge.left].bytes + "+" + model.tokens[merge.right].bytes);
  }
  return all;
}

TEST(BpeTrainer, WritesTheCommittedModel) {
  PieceCounts counts({{pattern_regex("gpt2")}});
  std::vector<int64_t> read;
  counts.add_file(data_file("bpe_text.txt"), [&](int64_t bytes) { read.push_back(bytes); });
  EXPECT_EQ(read.size(), 1u);
  EXPECT_EQ(tokenizer_json(train_bpe({.vocab = 700}, counts)), content(data_file("bpe.json")));
}

TEST(BpeTrainer, TheMostFrequentPairFirstThenTheSmallestIds) {
  // bc: 3 times; ab, xy: 2 times; then a+bc and xy.
  EXPECT_EQ(merges(trained({.vocab = 260, .min_frequency = 1}, {"bc", "abc", "abc", "xy", "xy"})),
            (std::vector<std::string>{"b+c", "a+bc", "x+y"}));
  // All once: the pair whose left byte comes first.
  EXPECT_EQ(merges(trained({.vocab = 259, .min_frequency = 1}, {"zb", "ay", "ax"})),
            (std::vector<std::string>{"a+x", "a+y"}));
}

TEST(BpeTrainer, PairsThatOverlapAreMergedFromTheLeft) {
  EXPECT_EQ(merges(trained({.vocab = 300, .min_frequency = 2}, {"aaaaa", "aaaaa"})),
            (std::vector<std::string>{"a+a", "aa+a", "aa+aaa"}));
}

TEST(BpeTrainer, StopsWhereNoPairIsFrequentEnough) {
  const BpeModel model = trained({.vocab = 300, .min_frequency = 3}, {"ab", "ab", "ab", "cd", "cd"});
  EXPECT_EQ(merges(model), (std::vector<std::string>{"a+b"}));
  EXPECT_EQ(model.tokens.size(), 258u);
  EXPECT_EQ(trained({.vocab = 257}, {"ab", "ab"}).merges.size(), 0u);
  EXPECT_EQ(trained({.vocab = 300}, {}).tokens.size(), 257u);
  EXPECT_THROW(trained({.vocab = 256}, {}), InternalError);
}

TEST(BpeTrainer, TheOrderOfTextsDoesNotMatterNorDoBytesThatAreNotUtf8) {
  const std::vector<std::string> texts = {"the strand", "the third", not_utf8(), "a third strand"};
  const BpeModel forth = trained({.vocab = 300}, texts), back = trained({.vocab = 300}, {texts.rbegin(), texts.rend()});
  EXPECT_EQ(forth.merges, back.merges);
  EXPECT_GT(forth.merges.size(), 10u);
  const auto tokenizer = bpe_tokenizer(forth);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(not_utf8())), not_utf8());
}

TEST(PieceCounts, AFileLargerThanABlockCountsAsOneText) {
  const std::string path = testing::TempDir() + "piece_counts_large.txt";
  const std::string line = "one two  three\n\n";
  {
    std::ofstream file(path, std::ios::binary);
    for (int i = 0; i < (65 << 20) / 16; ++i) file << line;
  }
  PieceCounts counts({{pattern_regex("gpt2")}});
  counts.add_file(path);
  std::remove(path.c_str());
  const int64_t lines = (65 << 20) / 16;
  // "\n\n" before "one" is cut into two, the last is not.
  EXPECT_EQ(counts.table().find(" two")->second, lines);
  EXPECT_EQ(counts.table().find("\n")->second, 2 * (lines - 1));
  EXPECT_EQ(counts.table().find("\n\n")->second, 1);
  EXPECT_EQ(counts.table().size(), 6u);
}

}  // namespace
}  // namespace braid::tokenize::bpe_trainer_test
