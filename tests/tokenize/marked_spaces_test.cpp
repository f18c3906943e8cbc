// Tokenizers of SentencePiece's kind: the reference's tokens and texts in every form of file, bytes that come back,
// what is refused (tools/reference/marked_spaces.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"
#include "tests/tokenize/bpe_golden.h"

namespace braid::tokenize::marked_spaces_test {
namespace {

using Json = nlohmann::json;
using Tokens = std::vector<int>;

const Json& golden() {
  static const auto all = Json::parse(std::ifstream(data_file("marked_spaces_golden.json")));
  return all;
}

class MarkedSpaces : public ScratchFolder {
 protected:
  std::unique_ptr<Tokenizer> tokenizer(const Json& form) {
    json_.update({{"normalizer", form.at("normalizer")}, {"pre_tokenizer", form.at("pre_tokenizer")}});
    json_["model"]["ignore_merges"] = form.at("ignore_merges");
    return written();
  }
  std::unique_ptr<Tokenizer> written() const {
    write(path("tokenizer.json"), json_.dump());
    return make_tokenizer(folder_);
  }
  std::string complaint() const {
    try {
      written();
    } catch (const ConfigError& error) {
      std::string rules;
      for (const Problem& problem : error.problems()) rules += problem.rule + "\n";
      return rules;
    }
    return "accepted";
  }

  Json json_ = Json::parse(std::ifstream(data_file("marked_spaces.json")));
};

TEST_F(MarkedSpaces, EncodeAndDecodeAsTheReference) {
  const auto texts = golden().at("texts").get<std::vector<std::string>>();
  for (const auto& [name, form] : golden().at("forms").items()) {
    SCOPED_TRACE(name);
    const auto own = tokenizer(form);
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto ids = golden().at("ids").at(name).at(i).get<Tokens>();
      EXPECT_EQ(own->encode(texts[i]), ids) << texts[i];
      EXPECT_EQ(own->decode_text(ids), golden().at("decoded").at(name).at(i).get<std::string>());
    }
  }
}

// Token by token, as text is generated: the space in front of the text is the only one that is not there.
TEST_F(MarkedSpaces, TokensDecodeOneByOne) {
  const auto own = written();
  for (const std::string& text : hard_texts()) {
    const Tokens tokens = own->encode(text);
    ASSERT_FALSE(tokens.empty());
    std::string streamed = own->decode_text({tokens[0]});
    for (size_t i = 1; i < tokens.size(); ++i) streamed += own->decode({tokens[i]});
    EXPECT_EQ(streamed, own->decode_text(tokens)) << text;
  }
  EXPECT_EQ(own->decode_text(own->encode("one two")), "one two");
  EXPECT_EQ(own->decode(own->encode("one two")), " one two");
  EXPECT_EQ(own->decode_text(own->encode("  two spaces")), "  two spaces");
  EXPECT_TRUE(own->encode("").empty());
}

TEST_F(MarkedSpaces, BytesThatAreNotUtf8ComeBack) {
  std::mt19937 random(3);
  for (const auto& [name, form] : golden().at("forms").items()) {
    const auto own = tokenizer(form);
    if (name != "always split") {
      EXPECT_EQ(own->decode_text(own->encode(not_utf8())), not_utf8()) << name;
    }
    for (int round = 0; round < 50; ++round) {
      std::string text = "x";  // a space at the begin is lost where one is only put where none is
      for (int i = 0; i < 40; ++i) text += static_cast<char>(random());
      EXPECT_EQ(own->decode_text(own->encode(text)), text) << name;
    }
  }
}

TEST_F(MarkedSpaces, SpecialTokensInATextAreText) {
  const auto own = written();
  EXPECT_EQ(own->end_of_text(), 2);
  const Tokens tokens = own->encode("a</s>b");
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 2), 0);
  EXPECT_EQ(own->decode_text(tokens), "a</s>b");
  EXPECT_EQ(own->decode_text({2}), "");
}

TEST_F(MarkedSpaces, WhatIsNotFollowedIsRefusedAllAtOnce) {
  json_["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFKC"}}}}};
  json_["pre_tokenizer"] = {{"type", "Whitespace"}};
  json_["model"]["vocab"].erase("<0x41>");
  json_["model"]["dropout"] = 0.1;
  json_["added_tokens"].push_back({{"id", 900}, {"content", "x y"}, {"special", false}, {"normalized", true}});
  EXPECT_EQ(complaint(),
            "normalizer: must be Prepend and Replace of spaces by U+2581, is {\"type\":\"NFKC\"}\n"
            "pre_tokenizer: must be null or Metaspace with U+2581, is {\"type\":\"Whitespace\"}\n"
            "normalizer: spaces must become U+2581 once, by Replace or by the pre-tokenizer Metaspace\n"
            "model.dropout: is not supported, is 0.1\n"
            "added_tokens: normalized is not supported, has it: \"x y\"\n"
            "vocabulary: must have a token for every byte (byte level); missing 1: 65\n");
}

}  // namespace
}  // namespace braid::tokenize::marked_spaces_test
