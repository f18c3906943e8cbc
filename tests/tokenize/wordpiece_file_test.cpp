// WordPiece files: what is read, and refusals, all at once.
#include "braid/tokenize/wordpiece_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "braid/base/errors.h"
#include "braid/tokenize/tokenizer_file.h"
#include "tests/support/scratch_folder.h"

namespace braid::tokenize::wordpiece_file_test {
namespace {

using Ids = std::vector<int>;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

class WordPieceFile : public ScratchFolder {
 protected:
  std::unique_ptr<Tokenizer> tokenizer() const {
    write(path("tokenizer.json"), json_.dump());
    return make_tokenizer(folder_);
  }
  Strings faults() const {
    try {
      tokenizer();
    } catch (const ConfigError& error) {
      Strings rules;
      for (const Problem& problem : error.problems()) rules.push_back(problem.rule);
      return rules;
    }
    return {};
  }

  Json json_ = Json::parse(R"({
    "version": "1.0", "truncation": {"max_length": 8}, "padding": null,
    "added_tokens": [{"id": 0, "content": "[UNK]", "special": true, "lstrip": true},
                     {"id": 1, "content": "[SEP]", "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                   "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 6,
              "vocab": {"[UNK]": 0, "[SEP]": 1, "un": 2, "##able": 3, "##a": 4, "e": 5, "##": 6, ".": 7, "": 8}}})");
};

TEST_F(WordPieceFile, TheLongestTokenIsTakenAndWordsThatCannotBeSpelledAreUnknown) {
  const auto made = tokenizer();
  EXPECT_EQ(made->vocab(), 9);
  EXPECT_EQ(made->end_of_text(), 1);
  EXPECT_EQ(made->encode("Unable una unab \u00c9a."), (Ids{2, 3, 2, 4, 0, 5, 4, 7}));
  EXPECT_EQ(made->encode("unaaaa unaaaaa"), (Ids{2, 4, 4, 4, 4, 0}));
  EXPECT_EQ(made->encode("[SEP] ##a"), (Ids{0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(made->encode("").empty());
  EXPECT_TRUE(made->encode("\x01 \xFF").empty());
}

TEST_F(WordPieceFile, TokensAreDecodedFromTheBeginAndFromTheMiddleOfAText) {
  const auto made = tokenizer();
  EXPECT_EQ(made->decode_text({2, 3, 5, 7, 0, 1, 5}), "unable e. e");
  EXPECT_EQ(made->decode_text({1, 4, 4}), "##aa");
  EXPECT_EQ(made->decode({2, 3}) + made->decode({4, 7}), " unablea.");
  EXPECT_EQ(made->decode({}), "");
  json_["decoder"] = nullptr;
  EXPECT_EQ(tokenizer()->decode_text({2, 3, 7}), "un ##able .");
  json_["decoder"] = {{"type", "WordPiece"}, {"prefix", ""}, {"cleanup", false}};
  EXPECT_EQ(tokenizer()->decode_text({2, 3, 7}), "un##able.");
}

TEST_F(WordPieceFile, AccentsAreStrippedAsTextIsLowercasedUnlessTheFileSaysSo) {
  json_["normalizer"]["strip_accents"] = false;
  EXPECT_EQ(tokenizer()->encode("\u00c9 E"), (Ids{0, 5}));
  json_["normalizer"].erase("strip_accents");
  EXPECT_EQ(tokenizer()->encode("\u00c9 E"), (Ids{5, 5}));
  json_["normalizer"]["lowercase"] = false;
  EXPECT_EQ(tokenizer()->encode("\u00e9 e"), (Ids{0, 5}));
  json_["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json::array({json_["normalizer"]})}};
  EXPECT_EQ(tokenizer()->encode("\u00e9 e"), (Ids{0, 5}));
}

TEST_F(WordPieceFile, EndOfTextIsThatOfTheConfigurationOrTheSeparator) {
  json_["added_tokens"].push_back({{"id", 20}, {"content", "</s>"}, {"special", true}});
  EXPECT_EQ(tokenizer()->end_of_text(), 20);
  EXPECT_EQ(tokenizer()->vocab(), 21);
  EXPECT_FALSE(tokenizer()->has(19));
  write(path("tokenizer_config.json"), R"({"sep_token": {"content": "[SEP]"}})");
  EXPECT_EQ(tokenizer()->end_of_text(), 1);
  write(path("tokenizer_config.json"), R"({"sep_token": "[SEP]", "eos_token": "un"})");
  EXPECT_EQ(tokenizer()->end_of_text(), 2);
  EXPECT_EQ(tokenizer()->encode("un une"), (Ids{0, 0}));  // a text does not end itself
  write(path("tokenizer_config.json"), R"({"eos_token": "[UNK]"})");
  EXPECT_EQ(faults(), (Strings{"end of text: must be a token of its own, and \"[UNK]\" is one that texts become"}));
}

TEST_F(WordPieceFile, NamesEverythingThatIsNotSupported) {
  json_["normalizer"] = {{"type", "NFD"}};
  json_["pre_tokenizer"] = nullptr;
  json_["decoder"] = {{"type", "ByteLevel"}};
  json_["model"]["unk_token"] = "<unk>";
  json_["model"]["continuing_subword_prefix"] = nullptr;
  json_["model"]["max_input_chars_per_word"] = -1;
  json_["model"]["vocab"]["e"] = 2;
  json_["added_tokens"].push_back({{"id", 9}, {"content", "x"}, {"single_word", true}});
  EXPECT_EQ(faults(),
            (Strings{
                "normalizer: must be null or one BertNormalizer, is {\"type\":\"NFD\"}",
                "pre_tokenizer: must be BertPreTokenizer, is null",
                "model.unk_token: must be a token of the vocabulary, is \"<unk>\"",
                "model.continuing_subword_prefix: must be a string, is null",
                "model.max_input_chars_per_word: must be a whole number from 0 on, is -1",
                "added_tokens: single_word is not supported, has it: \"x\"",
                "decoder: must be null or WordPiece, is {\"type\":\"ByteLevel\"}",
                "vocabulary: ids must be distinct whole numbers below 2^24 that leave at most 2^20 out; not so 1: "
                "un (2, taken)",
            }));
}

TEST_F(WordPieceFile, NamesWrongValuesOfTheParts) {
  json_["normalizer"] = {{"type", "BertNormalizer"}, {"clean_text", 1}, {"lowercase", true}, {"strip_accents", "no"}};
  json_["decoder"] = {{"type", "WordPiece"}, {"prefix", 2}};
  json_["model"]["vocab"] = Json::array();
  json_["added_tokens"] = Json::array({{{"id", 9}, {"content", "\u0301"}, {"normalized", true}}});
  EXPECT_EQ(faults(), (Strings{
                          "normalizer.clean_text: must be true or false, is 1",
                          "normalizer.handle_chinese_chars: must be true or false, is null",
                          "normalizer.strip_accents: must be true or false, is \"no\"",
                          "model.vocab: must be an object of tokens and ids",
                          "model.unk_token: must be a token of the vocabulary, is \"[UNK]\"",
                          "added_tokens: must have characters that the normalizer keeps, not so \"\u0301\"",
                          "decoder.prefix: must be a string, is 2",
                          "decoder.cleanup: must be true or false, is null",
                      }));
}

TEST_F(WordPieceFile, IsNoBpeModel) {
  write(path("tokenizer.json"), json_.dump());
  EXPECT_THROW(read_bpe(folder_), ConfigError);
}

}  // namespace
}  // namespace braid::tokenize::wordpiece_file_test
