// Token files give back what was written, and no damage goes unnoticed.
#include "braid/data/token_file.h"

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "tests/support/scratch_folder.h"

namespace braid::data::token_file_test {
namespace {

class TokenFileTest : public ScratchFolder {
 protected:
  using Documents = std::vector<std::vector<uint32_t>>;

  static Documents random_documents(int count, int64_t vocab, uint64_t seed) {
    Documents documents(static_cast<size_t>(count));
    for (size_t d = 0; d < documents.size(); ++d) {
      documents[d].resize(1 + random_bits(seed, d) % 40);
      for (size_t i = 0; i < documents[d].size(); ++i) {
        documents[d][i] = static_cast<uint32_t>(random_bits(seed + d, i) % static_cast<uint64_t>(vocab));
      }
    }
    return documents;
  }
  TokenFileInfo write_tokens(const std::string& name, const Documents& documents, int64_t vocab) {
    PosixFileSystem files;
    TokenFileWriter writer(files, path(name), vocab, 77);
    for (const auto& document : documents) writer.add_document(document);
    return writer.finish();
  }
  std::shared_ptr<TokenFile> open(const std::string& name) {
    return std::make_shared<TokenFile>(path(name), std::make_shared<ResidentPages>());
  }
  // Reads the whole file the way training would; the error's offset, or -1 when there is none.
  int64_t offset_of_fault(const std::string& name) {
    try {
      const auto file = open(name);
      std::vector<int64_t> all(static_cast<size_t>(file->num_tokens()));
      file->read(0, all);
      file->read_documents(0, all);
      return -1;
    } catch (const IoError& error) {
      EXPECT_EQ(error.path(), path(name));
      EXPECT_GE(error.offset(), 0) << error.what();
      return error.offset();
    }
  }
};

TEST_F(TokenFileTest, GivesBackTokensAndDocuments) {
  for (const int64_t vocab : {257, 65536, 65537, 1 << 24}) {
    const auto documents = random_documents(3000, vocab, static_cast<uint64_t>(vocab));
    const auto info = write_tokens("tokens", documents, vocab);
    const auto file = open("tokens");
    file->verify();
    EXPECT_EQ(file->info(), info);
    EXPECT_EQ(file->width(), vocab <= 65536 ? 2 : 4);
    EXPECT_EQ(file->vocab(), vocab);
    EXPECT_EQ(file->tokenizer(), 77u);
    std::vector<int64_t> tokens, numbers;
    for (size_t d = 0; d < documents.size(); ++d) {
      for (const uint32_t token : documents[d]) tokens.push_back(token), numbers.push_back(static_cast<int64_t>(d));
    }
    ASSERT_EQ(file->num_tokens(), static_cast<int64_t>(tokens.size()));
    ASSERT_EQ(file->num_documents(), 3000);
    for (uint64_t i = 0; i < 300; ++i) {
      const size_t begin = random_bits(1, i) % tokens.size();
      std::vector<int64_t> got(random_bits(2, i) % std::min<size_t>(tokens.size() - begin, 500) + 1);
      const std::vector<int64_t> want(tokens.begin() + begin, tokens.begin() + begin + got.size());
      const std::vector<int64_t> of(numbers.begin() + begin, numbers.begin() + begin + got.size());
      file->read(static_cast<int64_t>(begin), got);
      ASSERT_EQ(got, want);
      file->read_documents(static_cast<int64_t>(begin), got);
      ASSERT_EQ(got, of);
    }
  }
}

TEST_F(TokenFileTest, EachFlippedByteIsFound) {
  for (const int64_t vocab : {300, 70000}) {
    write_tokens("good", random_documents(7, vocab, 3), vocab);
    const std::string good = content(path("good"));
    ASSERT_EQ(offset_of_fault("good"), -1);
    std::fstream file(path("good"), std::ios::binary | std::ios::in | std::ios::out);
    const auto put = [&](size_t at, int byte) {
      file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(byte)).flush();
    };
    for (size_t i = 0; i < good.size(); ++i) {
      put(i, good[i] ^ (1 << (i % 8)));
      ASSERT_GE(offset_of_fault("good"), 0) << "byte " << i << " of " << good.size();
      put(i, good[i]);
    }
    ASSERT_EQ(offset_of_fault("good"), -1);
  }
}

TEST_F(TokenFileTest, ADamagedBlockIsNamedByItsOffset) {
  write_tokens("large", {std::vector<uint32_t>(50000, 7)}, 300);  // 100,000 bytes: seven blocks
  std::string bytes = content(path("large"));
  bytes[4096 + 3 * 16384 + 100] = 1;
  write(path("large"), bytes);
  const auto file = open("large");
  std::vector<int64_t> window(100);
  file->read(3 * 8192 - 100, window);
  try {
    file->read(3 * 8192 - 99, window);
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.offset(), 4096 + 3 * 16384);
  }
  file->read(4 * 8192, window);
  EXPECT_THROW(file->verify(), IoError);
}

TEST_F(TokenFileTest, AFileOfAnotherLengthIsRefused) {
  write_tokens("good", random_documents(4, 300, 3), 300);
  const std::string good = content(path("good"));
  write(path("bad"), good);
  for (size_t size = good.size(); size-- > 0;) {
    std::filesystem::resize_file(path("bad"), size);
    ASSERT_GE(offset_of_fault("bad"), 0) << size;
  }
  write(path("bad"), good + std::string(8, '\0'));
  EXPECT_GE(offset_of_fault("bad"), 0);
  EXPECT_THROW(open("none"), IoError);
  EXPECT_THROW(TokenFile(folder_, std::make_shared<ResidentPages>()), IoError);
}

TEST_F(TokenFileTest, TheHeaderOfAnotherFileIsRefused) {
  write_tokens("one", {{1, 2, 3, 4}}, 300);
  write_tokens("two", {{1, 2, 3, 4}}, 301);
  const std::string one = content(path("one")), two = content(path("two"));
  write(path("bad"), one.substr(0, 4096) + two.substr(4096));
  EXPECT_EQ(offset_of_fault("bad"), 0);
}

// Written by braid 0.1.0 before files named their digests.
TEST_F(TokenFileTest, TheFirstVersionIsVerifiedByItsOwnDigests) {
  for (const char* side : {"train", "validation"}) {
    const std::string name = cat("source0-", side, "-00000.tokens");
    std::filesystem::copy_file(cat(BRAID_SOURCE_DIR, "/tests/data/data/prepared_v1/", name), path(name));
    ASSERT_EQ(offset_of_fault(name), -1);
    EXPECT_EQ(open(name)->info().digest.kind, DigestKind::Xxh64);
    const std::string good = content(path(name));
    for (const size_t at : {size_t{20}, size_t{42}, size_t{4097}, good.size() - 70, good.size() - 3}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 4);
      write(path("bad"), bad);
      EXPECT_GE(offset_of_fault("bad"), 0) << at;
    }
  }
  write_tokens("new", {{1, 2, 3}}, 300);
  EXPECT_EQ(open("new")->info().digest.kind, DigestKind::Xxh3);
}

TEST_F(TokenFileTest, NothingIsAFileToo) {
  write_tokens("empty", {}, 300);
  EXPECT_EQ(offset_of_fault("empty"), -1);
  EXPECT_EQ(open("empty")->num_tokens(), 0);
  EXPECT_THROW(write_tokens("foreign", {{300}}, 300), InternalError);
}

TEST_F(TokenFileTest, FilesJoinAsOneSource) {
  std::vector<Tokens> parts;
  std::vector<int64_t> tokens, numbers;
  for (int part = 0; part < 5; ++part) {
    const auto documents = part == 2 ? Documents{} : random_documents(20, 300, static_cast<uint64_t>(part));
    write_tokens(cat("part", part), documents, 300);
    parts.push_back(open(cat("part", part)));
    const int64_t first = numbers.empty() ? 0 : numbers.back() + 1;
    for (size_t d = 0; d < documents.size(); ++d) {
      for (const uint32_t token : documents[d])
        tokens.push_back(token), numbers.push_back(first + static_cast<int64_t>(d));
    }
  }
  const JoinedTokens joined(parts);
  ASSERT_EQ(joined.num_tokens(), static_cast<int64_t>(tokens.size()));
  EXPECT_EQ(joined.num_documents(), 80);
  for (size_t begin = 0; begin < tokens.size(); begin += 13) {
    std::vector<int64_t> got(std::min<size_t>(700, tokens.size() - begin));
    joined.read(static_cast<int64_t>(begin), got);
    ASSERT_TRUE(std::equal(got.begin(), got.end(), tokens.begin() + begin));
    joined.read_documents(static_cast<int64_t>(begin), got);
    ASSERT_TRUE(std::equal(got.begin(), got.end(), numbers.begin() + begin));
  }
}

}  // namespace
}  // namespace braid::data::token_file_test
