// Bytes to tokens and back; tokenizers by name.
#include "braid/tokenize/tokenizer.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"

namespace braid::tokenize::tokenizer_test {
namespace {

TEST(ByteTokenizer, EveryByteComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const auto tokenizer = byte_tokenizer();
  const auto tokens = tokenizer->encode(all);
  ASSERT_EQ(tokens.size(), 256u);
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(tokens[byte], byte);
  EXPECT_EQ(tokenizer->decode(tokens), all);
}

TEST(ByteTokenizer, EndOfTextIsATokenOfItsOwnAndGivesNoCharacters) {
  const auto tokenizer = byte_tokenizer();
  EXPECT_EQ(tokenizer->vocab(), 257);
  EXPECT_EQ(tokenizer->end_of_text(), 256);
  EXPECT_EQ(tokenizer->decode({'a', 256, 'b'}), "ab");
  EXPECT_THROW(tokenizer->decode({257}), InternalError);
  EXPECT_THROW(tokenizer->decode({-1}), InternalError);
}

TEST(MakeTokenizer, NamesTheNearest) {
  EXPECT_EQ(make_tokenizer("bytes")->vocab(), 257);
  try {
    make_tokenizer("byte");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "data.tokenizer = \"byte\": must be \"bytes\", a tokenizer.json, or a folder with it or with vocab.json and "
        "merges.txt; there is no such file; nearest valid is \"bytes\"");
  }
}

}  // namespace
}  // namespace braid::tokenize::tokenizer_test
