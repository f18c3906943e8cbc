// The parts of a tokenizer's files that are read, and refusals, all at once.
#include "braid/tokenize/tokenizer_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "braid/base/errors.h"
#include "braid/tokenize/byte_alphabet.h"
#include "tests/tokenize/bpe_golden.h"

namespace braid::tokenize::tokenizer_file_test {
namespace {

using Json = nlohmann::json;

class TokenizerFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tokenizer_file_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    json_ = Json::parse(std::ifstream(data_file("bpe.json")));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }
  BpeModel read() const {
    write("tokenizer.json", json_.dump());
    return read_bpe(folder_);
  }
  // The rules broken, without the key and the path in front.
  std::vector<std::string> faults(const std::string& path) const {
    try {
      read_bpe(path);
    } catch (const ConfigError& error) {
      std::vector<std::string> rules;
      for (const Problem& problem : error.problems()) {
        EXPECT_EQ(problem.key, "data.tokenizer");
        EXPECT_EQ(problem.value, path);
        rules.push_back(problem.rule);
      }
      return rules;
    }
    return {};
  }
  std::vector<std::string> faults() const {
    write("tokenizer.json", json_.dump());
    return faults(folder_);
  }

  std::string folder_;
  Json json_;
};

using Strings = std::vector<std::string>;

TEST_F(TokenizerFile, BothSpellingsOfMergesAndTheTwoFilesGiveTheSameModel) {
  const BpeModel expected = read();
  EXPECT_EQ(expected.merges.size(), 301u);
  std::string lines = "#version: 0.2\n";
  Json spelled = Json::array();
  for (const auto& merge : json_["model"]["merges"]) {
    spelled.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    lines += spelled.back().get<std::string>() + "\r\n";
  }
  json_["model"]["merges"] = spelled;
  json_["model"].erase("type");
  EXPECT_EQ(read().merges, expected.merges);
  EXPECT_EQ(read_bpe(folder_ + "/tokenizer.json").merges, expected.merges);

  std::filesystem::remove(folder_ + "/tokenizer.json");
  write("vocab.json", json_["model"]["vocab"].dump());
  write("merges.txt", lines);
  const BpeModel two = read_bpe(folder_);
  EXPECT_EQ(two.merges, expected.merges);
  EXPECT_EQ(two.tokens, expected.tokens);
  EXPECT_EQ(two.pretokenizer.regexes, Strings{pattern_regex("gpt2")});
  EXPECT_EQ(make_tokenizer(folder_)->encode("the strand"), bpe_tokenizer(expected)->encode("the strand"));
}

TEST_F(TokenizerFile, WhatIsWrittenIsReadAgain) {
  for (const auto& name : pattern_names()) {
    BpeModel model = small_model(name, WholePieces::Lookup);
    model.normalizer = Normalizer::FormC;
    write("tokenizer.json", tokenizer_json(model));
    const BpeModel read = read_bpe(folder_);
    EXPECT_EQ(read.tokens, model.tokens);
    EXPECT_EQ(read.merges, model.merges);
    EXPECT_EQ(read.pretokenizer.regexes, model.pretokenizer.regexes);
    EXPECT_EQ(read.whole_pieces, model.whole_pieces);
    EXPECT_EQ(read.normalizer, model.normalizer);
    EXPECT_EQ(read.end_of_text, 0);
  }
}

TEST_F(TokenizerFile, StagesAndAddedTokens) {
  json_["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true},
      {"type": "Split", "pattern": {"String": "a.b"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false}]})");
  json_["added_tokens"].push_back({{"id", 600}, {"content", "<call>"}, {"special", false}});
  json_["added_tokens"].push_back({{"id", 601}, {"content", "<|pad|>"}, {"special", true}, {"lstrip", true}});
  const BpeModel model = read();
  EXPECT_EQ(model.pretokenizer.regexes, (Strings{R"(\p{N})", R"(a\.b)", pattern_regex("gpt2")}));
  ASSERT_EQ(model.tokens.size(), 602u);
  EXPECT_EQ(model.tokens[599].kind, TokenKind::Hole);
  EXPECT_EQ(model.tokens[600], (BpeToken{"<call>", TokenKind::Added}));
  EXPECT_EQ(model.tokens[601], (BpeToken{"<|pad|>", TokenKind::Special}));
}

TEST_F(TokenizerFile, EndOfTextIsTheConfiguredOneOrAUsualName) {
  EXPECT_EQ(read().end_of_text, 0);
  json_["added_tokens"].push_back({{"id", 558}, {"content", "<|stop|>"}, {"special", true}});
  write("tokenizer_config.json", R"({"eos_token": {"content": "<|stop|>"}})");
  EXPECT_EQ(read().end_of_text, 558);
  write("tokenizer_config.json", R"({"eos_token": "<|nothing|>"})");
  EXPECT_EQ(faults(), Strings{"end of text: the vocabulary has none of the tokens <|nothing|>"});
}

// Text would end a document, and the text's own token would be missing.
TEST_F(TokenizerFile, EndOfTextIsNoTokenThatTextsBecome) {
  for (const std::string name : {"a", "he"}) {
    write("tokenizer_config.json", Json{{"eos_token", name}}.dump());
    EXPECT_EQ(faults(),
              Strings{"end of text: must be a token of its own, and \"" + name + "\" is one that texts become"});
  }
}

TEST_F(TokenizerFile, WhatIsNotSupportedIsRefusedAllAtOnce) {
  json_["normalizer"] = Json::parse(R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]})");
  json_["model"]["continuing_subword_prefix"] = "##";
  json_["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Metaspace"},
      {"type": "Split", "pattern": {"Regex": "\\w+"}, "behavior": "Removed"},
      {"type": "ByteLevel", "add_prefix_space": true, "use_regex": false}]})");
  json_["added_tokens"].push_back({{"id", 559}, {"content", "<x>"}, {"special", false}, {"lstrip", true}});
  const Strings rules = faults();
  const Strings beginnings = {"normalizer: must be null or NFC, is {\"type\":\"Lowercase\"}",
                              "pre_tokenizer: only Split, Digits and a last ByteLevel",
                              "pre_tokenizer: the behavior of Split must be \"Isolated\", is \"Removed\"",
                              "pre_tokenizer: regex = \\w+: \\w is not supported",
                              "pre_tokenizer: ByteLevel.add_prefix_space must be false",
                              "model.continuing_subword_prefix: is not supported, is \"##\"",
                              "added_tokens: lstrip is not supported, has it: \"<x>\""};
  ASSERT_EQ(rules.size(), beginnings.size()) << testing::PrintToString(rules);
  for (size_t i = 0; i < rules.size(); ++i) EXPECT_TRUE(rules[i].starts_with(beginnings[i])) << rules[i];
}

TEST_F(TokenizerFile, AVocabularyThatDoesNotHoldTogether) {
  json_["model"]["vocab"].erase("a");
  json_["model"]["vocab"].erase("b");
  json_["model"]["vocab"]["twice"] = 5;
  json_["model"]["vocab"]["far"] = 2000000;
  json_["model"]["merges"] = Json::array({Json::array({"q", "zz"}), "one two three", 7});
  json_["added_tokens"] = Json::array({{{"id", -1}, {"content", "<x>"}}});
  EXPECT_EQ(faults(),
            (Strings{"model.merges: 1 are neither \"left right\" nor [left, right]",
                     "vocabulary: ids must be distinct whole numbers below 2^24 that leave at most 2^20 out; not so 3: "
                     "far (2000000), twice (5, taken), <x> (-1)",
                     "merges: both sides and the result must be tokens; not so 2: model.merges[0] \"q zz\", "
                     "model.merges[1] \"one two three\"",
                     "vocabulary: must have a token for every byte (byte level); missing 2: 97, 98"}));
}

TEST_F(TokenizerFile, AKeyThatStandsTwiceIsRefused) {
  std::string vocab = json_["model"]["vocab"].dump(1);
  vocab.replace(vocab.rfind("\n}"), 2, ",\n \"he\": 1\n}");
  write("vocab.json", vocab);
  write("merges.txt", "#version: 0.2\n");
  const std::string line = std::to_string(std::count(vocab.begin(), vocab.end(), '\n'));
  EXPECT_EQ(faults(folder_)[0], "vocab.json:" + line + ": has the key \"he\" twice in one object");
  std::string text = json_.dump();
  text.insert(1, "\"model\": {},\n");
  write("tokenizer.json", text);
  EXPECT_EQ(faults(folder_), Strings{"tokenizer.json:2: has the key \"model\" twice in one object"});
}

TEST_F(TokenizerFile, ANulEndsNoFile) {
  write("tokenizer.json", json_.dump() + std::string("\0{}", 3));
  EXPECT_EQ(faults(folder_), Strings{"tokenizer.json:1: is not JSON: it has a NUL"});
}

TEST_F(TokenizerFile, LinesOfMergesAreNamedByTheirNumber) {
  write("vocab.json", json_["model"]["vocab"].dump());
  write("merges.txt", "#version: 0.2\r\n\u00e0 \u00a4\r\n\r\none two three\nq zz");
  EXPECT_EQ(faults(folder_)[0],
            "merges: both sides and the result must be tokens; not so 2: merges.txt:4 \"one two three\", "
            "merges.txt:5 \"q zz\"");
}

TEST_F(TokenizerFile, EqualMergesAreNamedByTheirPlace) {
  const Json pair = json_["model"]["merges"][0];
  const std::string first = pair[0].get<std::string>() + " " + pair[1].get<std::string>();
  write("vocab.json", json_["model"]["vocab"].dump());
  write("merges.txt", "#version: 0.2\n" + first + "\n\n" + first + "\n");
  EXPECT_EQ(faults(folder_)[0],
            cat("merges: each must be listed once; listed before are 1: merges.txt:4 \"", first, "\""));
  const size_t size = json_["model"]["merges"].size();
  json_["model"]["merges"].push_back(first);
  write("tokenizer.json", json_.dump());
  EXPECT_EQ(faults(folder_), Strings{cat("merges: each must be listed once; listed before are 1: model.merges[", size,
                                         "] \"", first, "\"")});
}

// A list of merges that was cut short leaves tokens that nothing makes.
TEST_F(TokenizerFile, MergesThatDoNotMakeTheVocabularyAreRefused) {
  const auto write_two = [&](size_t num_merges, const std::string& behind) {
    std::string lines = "#version: 0.2\n";
    for (size_t i = 0; i < num_merges; ++i) {
      const auto& merge = json_["model"]["merges"][i];
      lines += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
    }
    write("vocab.json", json_["model"]["vocab"].dump());
    write("merges.txt", lines + behind);
  };
  const std::string rule =
      "merges: must make every token of the vocabulary, or they are cut short or another's; none makes ";
  write_two(301, "");
  EXPECT_EQ(faults(folder_), Strings{});
  write_two(300, "");
  ASSERT_EQ(faults(folder_).size(), 1u);
  EXPECT_TRUE(faults(folder_)[0].starts_with(rule + "1: ")) << faults(folder_)[0];
  write_two(298, "");
  EXPECT_TRUE(faults(folder_)[0].starts_with(rule + "3: ")) << faults(folder_)[0];
  write_two(0, "");
  EXPECT_TRUE(faults(folder_)[0].starts_with(rule + "301: ")) << faults(folder_)[0];

  json_["model"]["vocab"]["<pad>"] = 558;  // names are made by nothing
  json_["model"]["vocab"]["madeupword0000"] = 559;
  write_two(301, "");
  EXPECT_EQ(faults(folder_), Strings{});
  json_["model"]["merges"].erase(300);
  EXPECT_EQ(faults().size(), 1u);
  json_["model"]["ignore_merges"] = true;  // whole pieces are looked up
  EXPECT_EQ(faults(), Strings{});
}

TEST_F(TokenizerFile, NamesWhatCannotBeRead) {
  std::filesystem::create_symlink("vocab.json", folder_ + "/vocab.json");
  write("merges.txt", "#version: 0.2\n");
  EXPECT_THROW(read_bpe(folder_), IoError);
  std::filesystem::remove(folder_ + "/vocab.json");
  std::filesystem::create_directory(folder_ + "/vocab.json");
  EXPECT_EQ(faults(folder_)[0], folder_ + "/vocab.json: is a folder, not a regular file");
  EXPECT_EQ(faults("/dev/zero"), Strings{"/dev/zero: is a device, not a regular file"});
  EXPECT_THROW(make_tokenizer(std::string(300, 'n')), IoError);
}

TEST_F(TokenizerFile, NoFileNoJsonNoModel) {
  EXPECT_EQ(faults(folder_), Strings{"the folder has neither tokenizer.json nor vocab.json and merges.txt"});
  write("merges.txt", "");
  EXPECT_EQ(faults(folder_).size(), 3u);  // both files and the bytes
  write("tokenizer.json", "{\"model\": ");
  EXPECT_EQ(faults(folder_),
            Strings{"tokenizer.json:1: is not JSON: unexpected end of input; expected '[', '{', or a literal"});
  write("tokenizer.json", "[1]");
  EXPECT_EQ(faults(folder_), Strings{"tokenizer.json: must be an object"});
  write("tokenizer.json", R"({"model": {"type": "Unigram"}})");
  EXPECT_EQ(faults(folder_)[1], "model.type: must be BPE or WordPiece, is Unigram");
}

TEST(ByteAlphabet, EveryByteHasASymbolOfItsOwn) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(byte_symbols(" a\n\xAD"), "\u0120a\u010a\u0143");
  EXPECT_EQ(symbol_bytes(byte_symbols(all)), all);
  EXPECT_EQ(symbol_bytes("a b"), std::nullopt);
  EXPECT_EQ(symbol_bytes("\u0144"), std::nullopt);
  EXPECT_EQ(symbol_bytes("\xFF"), std::nullopt);
}

}  // namespace
}  // namespace braid::tokenize::tokenizer_file_test
