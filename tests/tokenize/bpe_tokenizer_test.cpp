// Tokens against the reference's, bytes that come back, special and added tokens, threads.
#include "braid/tokenize/bpe_tokenizer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"
#include "tests/tokenize/bpe_golden.h"

namespace braid::tokenize::bpe_tokenizer_test {
namespace {

using Tokens = std::vector<int>;

void expect_golden(const Tokenizer& tokenizer, const nlohmann::json& golden) {
  const auto texts = hard_texts();
  for (int round = 0; round < 2; ++round) {  // the second from the cache
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(tokenizer.encode(texts[i]), golden.at(i).get<Tokens>()) << texts[i];
      EXPECT_EQ(tokenizer.decode(golden.at(i).get<Tokens>()), texts[i]);
    }
  }
}

TEST(BpeTokenizer, EncodesAsTheReference) {
  for (const auto& name : pattern_names()) {
    SCOPED_TRACE(name);
    expect_golden(*bpe_tokenizer(small_model(name)), bpe_golden().at("ids").at(name));
  }
}

TEST(BpeTokenizer, LooksWholePiecesUpAsTheReference) {
  expect_golden(*bpe_tokenizer(small_model("llama3", WholePieces::Lookup)), bpe_golden().at("ids").at("llama3 whole"));
}

TEST(BpeTokenizer, NormalizesAsTheReference) {
  BpeModel model = small_model("qwen2");
  model.normalizer = Normalizer::FormC;
  const auto tokenizer = bpe_tokenizer(model);
  const auto texts = hard_texts();
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto golden = bpe_golden().at("ids").at("qwen2 nfc").at(i).get<Tokens>();
    EXPECT_EQ(tokenizer->encode(texts[i]), golden) << texts[i];
    EXPECT_EQ(tokenizer->decode(golden), bpe_golden().at("nfc").at(i).get<std::string>());
  }
}

// In the form in which GPT-2's vocabulary comes, with a few hundred merges.
class TwoFiles : public ScratchFolder {};
TEST_F(TwoFiles, EncodeAsTheReference) {
  const auto model = nlohmann::json::parse(std::ifstream(data_file("bpe.json"))).at("model");
  std::string merges = "#version: 0.2\n";
  for (const auto& merge : model.at("merges")) {
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  }
  write(path("vocab.json"), model.at("vocab").dump());
  write(path("merges.txt"), merges);
  const auto tokenizer = make_tokenizer(folder_);
  EXPECT_EQ(tokenizer->vocab(), 558);
  expect_golden(*tokenizer, bpe_golden().at("ids").at("gpt2"));
}

TEST(BpeTokenizer, EncodesAsTheReferenceWithGpt2sVocabulary) {
  const char* folder = std::getenv("BRAID_GPT2");
  if (folder == nullptr) {
    GTEST_SKIP() << "GPT-2's own tokens: BRAID_GPT2 names no folder with its vocab.json and merges.txt";
  }
  const auto tokenizer = make_tokenizer(folder);
  EXPECT_EQ(tokenizer->vocab(), 50257);
  EXPECT_EQ(tokenizer->end_of_text(), 50256);
  expect_golden(*tokenizer, bpe_golden().at("gpt2_vocabulary"));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(not_utf8())), not_utf8());
}

TEST(BpeTokenizer, BytesThatAreNotUtf8ComeBack) {
  std::mt19937 random(3);
  for (const auto& name : pattern_names()) {
    const auto tokenizer = bpe_tokenizer(small_model(name));
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(not_utf8())), not_utf8());
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (size_t size = random() % 80; size > 0; --size) text.push_back(static_cast<char>(random()));
      ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text) << testing::PrintToString(text);
    }
  }
}

TEST(BpeTokenizer, NamesOfSpecialTokensAreTextAndSpecialTokensGiveNone) {
  const auto tokenizer = bpe_tokenizer(small_model());
  const auto tokens = tokenizer->encode("a<|endoftext|>b");
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), tokenizer->end_of_text()), 0);
  EXPECT_EQ(tokenizer->decode(tokens), "a<|endoftext|>b");
  EXPECT_EQ(tokenizer->decode({tokenizer->end_of_text()}), "");
  EXPECT_THROW(tokenizer->decode({tokenizer->vocab()}), InternalError);
  EXPECT_THROW(tokenizer->decode({-1}), InternalError);
}

TEST(BpeTokenizer, AddedTokensAreCutOutFirstTheLongestOfTheLeftmost) {
  BpeModel model = small_model();
  const int call = static_cast<int>(model.tokens.size());
  model.tokens.push_back({"<call>", TokenKind::Added});
  model.tokens.push_back({"<call>s", TokenKind::Added});
  model.tokens.push_back({});  // an id without a token
  const auto tokenizer = bpe_tokenizer(model), plain = bpe_tokenizer(small_model());
  Tokens expected = plain->encode("the<cal");
  for (const int token : {call, call + 1, call}) expected.push_back(token);
  for (const int token : plain->encode(" the")) expected.push_back(token);
  EXPECT_EQ(tokenizer->encode("the<cal<call><call>s<call> the"), expected);
  EXPECT_EQ(tokenizer->decode(expected), "the<cal<call><call>s<call> the");
  EXPECT_EQ(tokenizer->decode({call + 2}), "");
  EXPECT_EQ(tokenizer->vocab(), call + 3);
}

TEST(BpeTokenizer, AppendsBehindWhatIsThere) {
  const auto tokenizer = bpe_tokenizer(small_model());
  std::vector<uint32_t> tokens = {7};
  tokenizer->encode_append("the strand", tokens);
  const auto alone = tokenizer->encode("the strand");
  ASSERT_EQ(tokens.size(), alone.size() + 1);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), tokens.begin() + 1));
  EXPECT_EQ(tokens[0], 7u);
  EXPECT_TRUE(tokenizer->encode("").empty());
}

// Without the heap this would take minutes.
TEST(BpeTokenizer, AMillionBytesWithoutASpace) {
  const auto tokenizer = bpe_tokenizer(small_model());
  std::mt19937 random(5);
  std::string text;
  while (text.size() < 1000000) text.push_back(static_cast<char>('a' + random() % 26));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(BpeTokenizer, ThreadsShareOne) {
  const auto tokenizer = bpe_tokenizer(small_model());
  const auto texts = hard_texts();
  std::vector<Tokens> expected;
  for (const auto& text : texts) expected.push_back(tokenizer->encode(text));
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 5 * texts.size(); ++i) {
        const size_t at = (i + static_cast<size_t>(t) * 7) % texts.size();
        wrong[t] += tokenizer->encode(texts[at]) != expected[at];
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(BpeTokenizer, NeedsATokenForEveryByte) {
  BpeModel model = small_model();
  model.tokens[40].kind = TokenKind::Hole;
  EXPECT_THROW(bpe_tokenizer(model), InternalError);
}

// The definition: look at every pair, merge the leftmost of the lowest rank, until there is none.
std::vector<uint32_t> merged(std::vector<uint32_t> tokens, const std::vector<BpeMerge>& merges) {
  while (true) {
    size_t best = merges.size(), place = 0;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      for (size_t rank = 0; rank < best; ++rank) {
        if (merges[rank].left == tokens[i] && merges[rank].right == tokens[i + 1]) {
          best = rank;
          place = i;
        }
      }
    }
    if (best == merges.size()) return tokens;
    tokens[place] = merges[best].result;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(MergeTable, MergesLongAndShortPiecesByTheDefinition) {
  const std::vector<BpeMerge> merges = {{0, 0, 3}, {0, 1, 4}, {3, 3, 5},  {1, 0, 6}, {4, 2, 7},
                                        {3, 0, 8}, {5, 4, 9}, {2, 2, 10}, {6, 1, 9}, {10, 2, 11}};
  const MergeTable table(merges);
  MergeScratch scratch;
  std::mt19937 random(9);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint32_t> tokens(random() % 120);
    for (auto& token : tokens) token = random() % 3;
    const auto expected = merged(tokens, merges);
    table.merge(tokens, scratch);
    ASSERT_EQ(tokens, expected);
  }
}

TEST(MergeTable, OfAPairGivenTwiceTheLaterCounts) {
  const MergeTable table({{0, 1, 5}, {1, 2, 6}, {0, 1, 7}});
  MergeScratch scratch;
  std::vector<uint32_t> tokens = {0, 1, 2};
  table.merge(tokens, scratch);
  EXPECT_EQ(tokens, (std::vector<uint32_t>{0, 6}));
}

}  // namespace
}  // namespace braid::tokenize::bpe_tokenizer_test
