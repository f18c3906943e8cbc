// Which files become which tokens, in which order, and which are held out.
#include "braid/tokenize/text_corpus.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/tokenize/document_list.h"
#include "braid/tokenize/document_reader.h"
#include "tests/tokenize/drawn_tokens.h"

namespace braid::tokenize::text_corpus_test {
namespace {

namespace fs = std::filesystem;

class TextCorpusTest : public testing::Test {
 protected:
  TextCorpusTest() : folder_(fs::temp_directory_path() / cat("braid_data_", ::getpid())) {
    fs::create_directory(folder_);
  }
  ~TextCorpusTest() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& content) {
    const auto path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  data::Corpus read(DataSpec spec) { return read_text(spec, *byte_tokenizer()); }
  data::Corpus read_all(std::vector<std::string> include = {}, double fraction = 0) {
    return read({.paths = {folder_.string()}, .include = std::move(include), .validation_fraction = fraction});
  }

  fs::path folder_;
};

std::string message(const DataSpec& spec) {
  try {
    read_text(spec, *byte_tokenizer());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(TextCorpusTest, FoldersAreReadSortedByPathWhateverTheOrderOfWriting) {
  for (const char* name : {"b.txt", "z/1.txt", "a.txt", "z/0/deep.txt", "m.txt"}) write(name, name);
  EXPECT_EQ(drawn(read_all().train), "a.txt|b.txt|m.txt|z/0/deep.txt|z/1.txt|");
  const fs::path moved = folder_.string() + "_moved";
  fs::create_directory(moved);
  for (const char* name : {"m.txt", "z/0/deep.txt", "b.txt", "a.txt", "z/1.txt"}) {
    fs::create_directories((moved / name).parent_path());
    std::ofstream(moved / name) << name;
  }
  const auto same = read({.paths = {moved.string() + "/"}, .validation_fraction = 0});
  fs::remove_all(moved);
  EXPECT_EQ(drawn(same.train), drawn(read_all().train));
}

TEST_F(TextCorpusTest, PatternsFilterFileNamesInsideFoldersOnly) {
  write("one.py", "1");
  write("py/two.txt", "2");
  write("three.md", "3");
  const auto named = write("four.bin", "4");
  EXPECT_EQ(drawn(read_all({"*.py", "t*.m?"}).train), "1|3|");
  EXPECT_EQ(drawn(read({.paths = {named}, .include = {"*.py"}, .validation_fraction = 0}).train), "4|");
}

TEST(Matches, StarsAndQuestionMarks) {
  for (const char* pattern : {"*", "*.py", "a*b*.py", "a?b.py", "axb.py", "**xb*", "*y"})
    EXPECT_TRUE(matches("axb.py", pattern)) << pattern;
  for (const char* pattern : {"", "*.pyc", "?.py", "b*", "*x", "axb.p", "axb.pyy"})
    EXPECT_FALSE(matches("axb.py", pattern)) << pattern;
  EXPECT_TRUE(matches("aab", "*ab"));
  EXPECT_TRUE(matches("", "*"));
}

TEST_F(TextCorpusTest, EmptyFilesAreSkippedAndAFileReachedTwiceCountsOnce) {
  write("a", "A");
  write("b", "");
  write("c", "C");
  const auto again = folder_ / "." / "a";
  const auto corpus = read({.paths = {again.string(), folder_.string()}, .validation_fraction = 0});
  EXPECT_EQ(drawn(corpus.train), "A|C|");
  EXPECT_EQ(corpus.num_documents, 2);
}

TEST_F(TextCorpusTest, HiddenAndBinaryFilesInFoldersAreNamedAndPassedOver) {
  write("a", "A");
  write(".b", "B");
  write(".git/c", "C");
  write("d.png", std::string("\x89PNG\r\n\0\0", 8));
  write("e", std::string(9000, 'e') + std::string(1, '\0'));  // behind the first 8 KiB
  write("f", std::string(8191, 'f') + "\u00e9");              // a character that they cut
  write("latin1", "caf\xE9 au lait");
  const auto list = list_documents({.paths = {folder_.string()}});
  std::vector<std::string> names;
  for (const auto& document : list.documents) names.push_back(fs::path(document.path).filename());
  EXPECT_EQ(names, (std::vector<std::string>{"a", "e", "f"}));
  const auto at = [&](const char* name) { return (folder_ / name).string(); };
  EXPECT_EQ(list.passed_over,
            (PassedOver{{"hidden", {at(".b"), at(".git")}}, {"binary", {at("d.png"), at("latin1")}}}));
  EXPECT_EQ(read_all().choices,
            (std::vector<std::string>{cat("what is text; passed over in folders: 2 binary (", at("d.png"), ", ",
                                          at("latin1"), "), 2 hidden (", at(".b"), ", ", at(".git"), ")")}));
  // A file that is named itself is read.
  EXPECT_EQ(list_documents({.paths = {(folder_ / ".b").string(), (folder_ / "d.png").string()}}).documents.size(), 2u);
  fs::remove(folder_ / "a"), fs::remove(folder_ / "e"), fs::remove(folder_ / "f");
  EXPECT_EQ(message({.paths = {folder_.string()}}),
            cat("data.paths = ", folder_.string(), ": holds no text: passed over in folders: 2 binary (", at("d.png"),
                ", ", at("latin1"), "), 2 hidden (", at(".b"), ", ", at(".git"), ")"));
}

TEST_F(TextCorpusTest, AFolderOfOtherFormatsSaysWhatToDo) {
  write("rows.json", "[{\"text\": \"one\"}]");
  write("more.json", "[]");
  const std::string gzip = write("text.gz", "\x1f\x8b rest");
  EXPECT_EQ(message({.paths = {folder_.string()}}),
            cat("data.paths = ", folder_.string(), ": holds no text: ", (folder_ / "more.json").string(),
                " is a JSON array: give its elements as a .jsonl file, one JSON object per line (`jq -c '.[]'` writes "
                "them); ",
                gzip, " is compressed (gzip): give the output of `gzip -dc`"));
}

TEST(TextCheck, IsUtf8WithoutANul) {
  for (const char* text : {"", "plain", "\u00e9\u6f22\U0001F469", "cut \xF0\x9F\x91", "\xEF\xBB\xBFmark"}) {
    EXPECT_TRUE(is_text_so_far(text)) << text;
  }
  for (const std::string& text :
       {std::string("a\0b", 3), std::string("caf\xE9 noir"), std::string("\x80"), std::string("\xFF\xFE"),
        std::string("\xF0\x9F\x91xyz"), std::string("overlong \xE0\x80"), std::string("surrogate \xED\xA0"),
        std::string("too high \xF4\x90"), std::string("no second byte \xE2z")}) {
    EXPECT_FALSE(is_text_so_far(text)) << testing::PrintToString(text);
  }
}

TEST_F(TextCorpusTest, WhatCannotBeLookedAtIsNamed) {
  fs::create_symlink("loop", folder_ / "loop");
  const std::string loop = (folder_ / "loop").string(), long_name = (folder_ / std::string(300, 'n')).string();
  const std::string said = message({.paths = {loop, long_name}});
  EXPECT_NE(said.find("Too many levels of symbolic links"), std::string::npos) << said;
  EXPECT_NE(said.find("File name too long"), std::string::npos) << said;
}

TEST_F(TextCorpusTest, NamesEveryBadPathAtOnce) {
  const auto good = write("good", "text");
  const auto empty = write("empty", "");
  const auto gone = (folder_ / "gone").string();
  fs::create_directory(folder_ / "hollow");
  const auto hollow = (folder_ / "hollow").string();
  EXPECT_EQ(message({.paths = {good, gone, empty, hollow}}),
            cat("data.paths = ", gone, ": does not exist\ndata.paths = ", empty, ": is empty\ndata.paths = ", hollow,
                ": holds no file"));
  EXPECT_EQ(message({.paths = {folder_.string()}, .include = {"*.py", "*.c"}}),
            cat("data.paths = ", folder_.string(), ": holds no file that data.include names (*.py, *.c)"));
  EXPECT_EQ(message({}), "data.paths: must name at least one file or folder");
  EXPECT_EQ(message({.paths = {"/dev/null"}}), "data.paths = /dev/null: must be a file or a folder");
}

TEST_F(TextCorpusTest, ASingleDocumentHoldsOutItsEnd) {
  const auto path = write("only", "0123456789");
  const auto corpus = read({.paths = {path}, .validation_fraction = 0.3});
  EXPECT_EQ(drawn(corpus.train), "0123456|");
  EXPECT_EQ(drawn(corpus.validation), "789|");
  EXPECT_EQ(drawn(read({.paths = {path}, .validation_fraction = 0.01}).validation), "9|");
  EXPECT_EQ(drawn(read({.paths = {path}, .validation_fraction = 0}).train), "0123456789|");
}

TEST_F(TextCorpusTest, WholeDocumentsAreHeldOutAndNoneIsLost) {
  for (int i = 0; i < 40; ++i)
    write(cat("doc", 100 + i), std::string(static_cast<size_t>(50 + i), static_cast<char>('A' + i)));
  const auto corpus = read_all({}, 0.2);
  EXPECT_EQ(corpus.num_documents, 40);
  const auto train = drawn(corpus.train), validation = drawn(corpus.validation);
  const auto total = train.size() + validation.size();
  EXPECT_EQ(total, 40u * 50 + 39 * 20 + 40);
  EXPECT_NEAR(static_cast<double>(validation.size()) / static_cast<double>(total), 0.2, 0.02);
  for (int i = 0; i < 40; ++i) {
    const auto in = [&](const std::string& part) { return std::count(part.begin(), part.end(), 'A' + i); };
    EXPECT_EQ(in(train) + in(validation), 50 + i);
    EXPECT_TRUE(in(train) == 0 || in(validation) == 0) << i;
  }
}

TEST(HeldOut, NearTheFractionNeverNothingNeverAll) {
  for (const double fraction : {0.01, 0.05, 0.3, 0.5, 0.95}) {
    for (int n = 2; n <= 60; ++n) {
      std::vector<Document> documents;
      int64_t total = 0, largest = 0;
      for (int i = 0; i < n; ++i) {
        documents.push_back({"", 1 + (i * 7919 + n * 31) % 1000});
        total += documents.back().bytes;
        largest = std::max(largest, documents.back().bytes);
      }
      const auto out = held_out(documents, fraction);
      int64_t held = 0;
      for (int i = 0; i < n; ++i) held += out[i] ? documents[i].bytes : 0;
      EXPECT_GT(held, 0) << n;
      EXPECT_LT(held, total) << n;
      EXPECT_LE(std::abs(static_cast<double>(held) - fraction * static_cast<double>(total)),
                static_cast<double>(largest))
          << n << " " << fraction;
    }
  }
}

TEST(HeldOut, DoesNotFollowTheOrderOfDocuments) {
  const auto out = held_out(std::vector<Document>(200, {"", 10}), 0.5);
  const auto first_half = std::count(out.begin(), out.begin() + 100, true);
  EXPECT_GT(first_half, 30);
  EXPECT_LT(first_half, 70);
  EXPECT_EQ(std::count(out.begin(), out.end(), true), 100);
}

TEST_F(TextCorpusTest, BigramsOfTextBeatTheUniformModel) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += cat("The number ", i, " is followed by the number ", i + 1, ". ");
  const auto corpus = read({.paths = {write("text", text)}, .validation_fraction = 0.1});
  const double nats = data::bigram_entropy(corpus, 257);
  EXPECT_GT(nats, 0.5);
  EXPECT_LT(nats, 0.6 * std::log(257));
}

}  // namespace
}  // namespace braid::tokenize::text_corpus_test
