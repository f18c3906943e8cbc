// Tokens and decoded texts of the Hugging Face library, from a file that tools/reference/wordpiece.py wrote. With
// BRAID_WORDPIECE_GOLDEN set, that file is read in place of the committed one (tests/cli/wordpiece_peer_test.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "braid/tokenize/tokenizer.h"
#include "tests/support/scratch_folder.h"
#include "tests/tokenize/bpe_golden.h"

namespace braid::tokenize::wordpiece_golden_test {
namespace {

using Json = nlohmann::json;

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

class WordPieceGolden : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    const char* const other = std::getenv("BRAID_WORDPIECE_GOLDEN");
    golden_ = Json::parse(std::ifstream(other != nullptr ? other : data_file("wordpiece_golden.json")));
    for (const auto& text : golden_["texts"]) texts_.push_back(bytes_of(text.get<std::string>()));
  }

  // Returns the tokenizer of a case. The vocabulary of the file has the prefix "##".
  std::unique_ptr<Tokenizer> tokenizer(const Json& of_case) const {
    Json file = of_case["file"];
    const std::string prefix = file["model"]["continuing_subword_prefix"];
    Json& vocab = file["model"]["vocab"] = Json::object();
    for (std::string token : golden_["vocab"]) {
      if (token.starts_with("##")) token.replace(0, 2, prefix);
      vocab[token] = vocab.size();
    }
    file["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
    write(path("tokenizer.json"), file.dump());
    return make_tokenizer(path("tokenizer.json"));
  }

  Json golden_;
  std::vector<std::string> texts_;
};

TEST_F(WordPieceGolden, TokensAndDecodedTextsAreEqual) {
  ASSERT_GE(texts_.size(), 60u);
  for (const Json& of_case : golden_["cases"]) {
    SCOPED_TRACE(of_case["name"]);
    const auto ours = tokenizer(of_case);
    int num_unequal = 0;
    for (size_t i = 0; i < of_case["ids"].size() && num_unequal < 5; ++i) {
      const auto want = of_case["ids"][i].get<std::vector<int>>();
      const bool equal = (i >= texts_.size() || ours->encode(texts_[i]) == want) &&
                         ours->decode_text(want) == of_case["decoded"][i].get<std::string>();
      if (equal) continue;
      ++num_unequal;
      const auto got = i < texts_.size() ? ours->encode(texts_[i]) : want;
      ADD_FAILURE() << "text " << i << " " << testing::PrintToString(i < texts_.size() ? texts_[i] : "") << "\n"
                    << testing::PrintToString(got) << "\n"
                    << testing::PrintToString(want) << "\n"
                    << ours->decode_text(want) << "\n"
                    << of_case["decoded"][i].get<std::string>();
    }
  }
}

TEST_F(WordPieceGolden, TheCasesHaveKnownAndUnknownWordsAndAddedTokens) {
  for (const Json& of_case : golden_["cases"]) {
    int num_unknown = 0, num_added = 0, num_words = 0;
    const int first_added = static_cast<int>(golden_["vocab"].size());
    for (const auto& ids : of_case["ids"]) {
      for (const int id : ids) ++(id == 1 ? num_unknown : id >= first_added ? num_added : num_words);
    }
    EXPECT_GT(num_unknown, 20) << of_case["name"];
    EXPECT_GT(num_words, 1000) << of_case["name"];
    EXPECT_EQ(num_added > 0, of_case["file"]["added_tokens"].size() > 5) << of_case["name"];
  }
}

}  // namespace
}  // namespace braid::tokenize::wordpiece_golden_test
