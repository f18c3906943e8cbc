// Added tokens of a tokenizer.json: when they are cut out of a text. Expected ids are those of the Hugging Face library
// (tokenizers 0.23.3).
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "braid/tokenize/byte_alphabet.h"
#include "braid/tokenize/tokenizer.h"
#include "braid/tokenize/unicode_classes.h"
#include "tests/support/scratch_folder.h"

namespace braid::tokenize::added_tokens_test {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int>;

class AddedTokensOfJson : public ScratchFolder {
 protected:
  // Token 0 ends texts, 1 to 256 are the byte alphabet by code point ("0" is 16), then what the merges make.
  std::unique_ptr<Tokenizer> tokenizer(const Json& normalizer, const Json& added) const {
    std::vector<uint32_t> alphabet;
    for (int byte = 0; byte < 256; ++byte) alphabet.push_back(byte_symbol(static_cast<unsigned char>(byte)));
    std::sort(alphabet.begin(), alphabet.end());
    Json vocab{{"<|endoftext|>", 0}}, merges = Json::array();
    for (const uint32_t symbol : alphabet) {
      std::string name;
      append_utf8(name, symbol);
      vocab[name] = vocab.size();
    }
    const std::pair<const char*, const char*> made[] = {
        {"a", "i"},  {"Ċ", "Ġ"},  {"Ġ", "1"}, {"Ġ", "a"}, {"ai", "n"},  {"0", "2"},    {"2", "02"},  {"a", "f"},
        {"b", "e"},  {"c", "af"}, {"d", "s"}, {"e", "t"}, {"g", "ain"}, {"i", "f"},    {"l", "ain"}, {"m", "e"},
        {"m", "be"}, {"n", "d"},  {"n", "u"}, {"o", "r"}, {"o", "me"},  {"p", "lain"}, {"r", "n"}};
    for (const auto& [left, right] : made) {
      merges.push_back({left, right});
      vocab[std::string(left) + right] = vocab.size();
    }
    Json all = Json::array({{{"id", 0}, {"content", "<|endoftext|>"}, {"special", true}, {"normalized", false}}});
    all.insert(all.end(), added.begin(), added.end());
    const Json json{{"added_tokens", all},
                    {"normalizer", normalizer},
                    {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
                    {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
    write(path("tokenizer.json"), json.dump());
    return make_tokenizer(folder_);
  }
};

Json added(int id, const char* content, const Json& normalized) {
  return {{"id", id}, {"content", content}, {"special", false}, {"normalized", normalized}};
}

TEST_F(AddedTokensOfJson, DigitsMayBeAddedTokensToo) {
  Json digits = Json::array();
  for (int digit = 0; digit < 10; ++digit) digits.push_back(added(16 + digit, std::to_string(digit).c_str(), true));
  const auto tokens = tokenizer(nullptr, digits);
  EXPECT_EQ(tokens->encode("2024 and 12"), (Ids{18, 16, 18, 20, 260, 274, 221, 17, 18}));
  EXPECT_EQ(tokens->encode("7"), (Ids{23}));
  EXPECT_EQ(tokens->encode("no digits"), (Ids{78, 79, 221, 68, 73, 71, 73, 84, 83}));
  EXPECT_EQ(tokens->decode({18, 16, 18, 20, 260, 274, 221, 17, 18}), "2024 and 12");
}

TEST_F(AddedTokensOfJson, NormalizedOnesAreCutFromTheNormalForm) {
  const auto tokens = tokenizer({{"type", "NFC"}}, Json::array({added(280, "caf\u00e9", true)}));
  EXPECT_EQ(tokens->encode("cafe\u0301 x"), (Ids{280, 221, 88}));
  EXPECT_EQ(tokens->encode("caf\u00e9 x"), (Ids{280, 221, 88}));
  const auto decomposed = tokenizer({{"type", "NFC"}}, Json::array({added(280, "cafe\u0301", true)}));
  EXPECT_EQ(decomposed->encode("caf\u00e9 x"), (Ids{280, 221, 88})) << "the token's own form counts";
}

TEST_F(AddedTokensOfJson, OthersAreCutFromTheRawText) {
  const auto tokens = tokenizer({{"type", "NFC"}}, Json::array({added(280, "cafe\u0301", false)}));
  EXPECT_EQ(tokens->encode("cafe\u0301 x"), (Ids{280, 221, 88}));
  EXPECT_EQ(tokens->encode("caf\u00e9 x"), (Ids{266, 128, 103, 221, 88}));
}

TEST_F(AddedTokensOfJson, RawOnesComeFirst) {
  const auto tokens = tokenizer(nullptr, {added(280, "xab", true), added(281, "ab", false)});
  EXPECT_EQ(tokens->encode("xab"), (Ids{88, 281}));
  const auto one_kind = tokenizer(nullptr, {added(280, "xab", false), added(281, "ab", false)});
  EXPECT_EQ(one_kind->encode("xab"), (Ids{280})) << "the leftmost";
}

}  // namespace
}  // namespace braid::tokenize::added_tokens_test
