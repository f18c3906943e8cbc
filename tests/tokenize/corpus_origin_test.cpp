// The recorded origin of a corpus: bytes, not places.
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/tokenize/text_corpus.h"
#include "braid/tokenize/tokenizer_identity.h"
#include "tests/support/scratch_folder.h"

namespace braid::tokenize::corpus_origin_test {
namespace {

class OriginOfText : public ScratchFolder {
 protected:
  std::vector<ContentMark> marks(const std::vector<std::string>& names) const {
    DataSpec spec;
    for (const auto& name : names) spec.paths.push_back(path(name));
    return read_text(spec, *byte_tokenizer()).origin.sources;
  }
  void write_in(const std::string& folder, const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(path(folder));
    write(path(folder + "/" + name), text);
  }
};

TEST_F(OriginOfText, IsTheSameForTheSameBytesElsewhere) {
  for (const char* folder : {"here", "there"}) {
    write_in(folder, "a.txt", "one document");
    write_in(folder, "b.txt", "another");
  }
  const auto mark = marks({"here"});
  ASSERT_EQ(mark.size(), 1u);
  EXPECT_EQ(mark[0].name, "text");
  EXPECT_EQ(mark[0].documents, 2);
  EXPECT_EQ(mark[0].bytes, 19);
  EXPECT_EQ(marks({"there"}), mark);
  EXPECT_EQ(marks({"here/a.txt", "there/b.txt"}), mark);
}

TEST_F(OriginOfText, IsAnotherForAnotherByteBorderOrOrder) {
  write_in("here", "a.txt", "one document");
  write_in("here", "b.txt", "another");
  const auto mark = marks({"here"});
  EXPECT_NE(marks({"here/b.txt", "here/a.txt"}), mark);
  write_in("bit", "a.txt", "one documenT");
  write_in("bit", "b.txt", "another");
  write_in("border", "a.txt", "one documen");
  write_in("border", "b.txt", "tanother");
  for (const char* folder : {"bit", "border"}) {
    const auto other = marks({folder});
    EXPECT_EQ(other[0].bytes, mark[0].bytes);
    EXPECT_NE(other[0].digest, mark[0].digest) << folder;
  }
}

TEST_F(OriginOfText, ACopyOfATokenizerIsTheSameTokenizer) {
  write_in("tok", "mine.json", "{}");
  write_in("tok", "tokenizer_config.json", "{\"eos_token\": \"</s>\"}");
  const auto copy = tokenizer_copy(path("tok/mine.json"));
  ASSERT_EQ(copy.size(), 2u);
  EXPECT_EQ(copy.at("tokenizer.json"), "{}");
  for (const auto& [name, bytes] : copy) write_in("copy", name, bytes);
  EXPECT_EQ(tokenizer_identity(path("copy")), tokenizer_identity(path("tok/mine.json")));
  EXPECT_EQ(tokenizer_copy(path("copy")), copy);
  EXPECT_TRUE(tokenizer_copy("bytes").empty());
  // A tokenizer.json that cannot be looked at is not another tokenizer's absence.
  for (const char* name : {"vocab.json", "merges.txt"}) write_in("two", name, "{}");
  std::filesystem::create_symlink("tokenizer.json", path("two/tokenizer.json"));
  EXPECT_THROW(tokenizer_identity(path("two")), IoError);
  EXPECT_THROW(tokenizer_copy(path("nowhere")), IoError);
  EXPECT_NE(tokenizer_hash(1, 2), tokenizer_hash(1, 3));
  EXPECT_NE(tokenizer_hash(1, 2), tokenizer_hash(2, 2));
}

}  // namespace
}  // namespace braid::tokenize::corpus_origin_test
