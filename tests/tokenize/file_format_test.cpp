// Files in formats that are not text documents: found by their bytes, refused where they are named, passed over in
// folders.
#include "braid/tokenize/file_format.h"

#include "braid/base/errors.h"
#include "braid/tokenize/document_list.h"
#include "braid/tokenize/text_corpus.h"
#include "tests/support/scratch_folder.h"
#include "tests/tokenize/drawn_tokens.h"

namespace braid::tokenize::file_format_test {
namespace {

using namespace std::string_literals;

class FileFormats : public ScratchFolder {
 protected:
  FoundFormat found(const std::string& name, const std::string& bytes) {
    write(path(name), bytes);
    return file_format(path(name), "text");
  }
  std::string drawn_from(const std::vector<std::string>& paths) {
    return drawn(read_text({.paths = paths, .validation_fraction = 0}, *byte_tokenizer()).train);
  }
  std::string message(const std::vector<std::string>& paths) {
    try {
      return drawn_from(paths);
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
};

// ASCII, or code points below 0x10000, in units of `width` bytes.
std::string wide(const std::u16string& text, size_t width, bool big_endian) {
  std::string bytes;
  for (const char16_t c : text) {
    std::string unit(width, '\0');
    unit[big_endian ? width - 1 : 0] = static_cast<char>(c & 0xFF);
    unit[big_endian ? width - 2 : 1] = static_cast<char>(c >> 8);
    bytes += unit;
  }
  return bytes;
}

TEST_F(FileFormats, MagicBytesTellCompressedAndColumnarFiles) {
  const std::vector<std::tuple<std::string, FileFormat, std::string>> cases = {
      {"\x1f\x8b\x08\0\0"s, FileFormat::Compressed, "gzip"},
      {"\x28\xb5\x2f\xfd\x24"s, FileFormat::Compressed, "zstd"},
      {"\xfd\x37\x7a\x58\x5a\x00\x00"s, FileFormat::Compressed, "xz"},
      {"BZh91AY&SY\x94"s, FileFormat::Compressed, "bzip2"},
      {"PK\x03\x04\x14"s, FileFormat::Compressed, "zip"},
      {"PAR1\x15\x04 rows PAR1"s, FileFormat::Columnar, "Parquet"},
      {"ARROW1\0\0 rows ARROW1"s, FileFormat::Columnar, "Arrow"},
      {"Obj\x01\x04\x14"s, FileFormat::Columnar, "Avro"},
      {"ORC\x0a rows and the ORC\x17"s, FileFormat::Columnar, "ORC"},
  };
  for (const auto& [bytes, format, name] : cases) {
    const FoundFormat f = found("file.txt", bytes);
    EXPECT_EQ(f.format, format) << name;
    EXPECT_EQ(f.name, name);
    EXPECT_FALSE(f.remedy.empty()) << name;
  }
  for (const char* text : {"ORCHIDS grow slowly", "PAR1 and PAR2 are files", "BZh9 is a magic number", "PK", "plain"}) {
    EXPECT_EQ(found("file.txt", text).format, FileFormat::Text) << text;
  }
}

TEST_F(FileFormats, WideCharactersAreToldWithAndWithoutAMark) {
  const std::u16string latin = u"Some text of letters.\nAnd a line.\n";
  const std::u16string chinese = u"\u4eca\u5929\u7684\u5929\u6c23\u5f88\u597d\n\u6211\u5011\u51fa\u53bb\u8d70\u8d70\n";
  for (const auto& text : {latin, chinese, u"\ufeff" + latin, u"\ufeff" + chinese}) {
    for (const bool big_endian : {false, true}) {
      EXPECT_EQ(found("file.txt", wide(text, 2, big_endian)).format, FileFormat::Utf16) << big_endian;
      EXPECT_EQ(found("file.txt", wide(text, 4, big_endian)).format, FileFormat::Utf32) << big_endian;
    }
  }
  for (const std::string& text : {"a text with one\0 stray NUL, and ends"s, "\0\0\0\0"s, "a\0"s, "\x01\0\x02\0\x03\0"s,
                                  "caf\xe9 au lait"s, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"s}) {
    EXPECT_EQ(found("file.txt", text).format, FileFormat::Text) << testing::PrintToString(text);
  }
}

TEST_F(FileFormats, JsonIsToldByItsFirstLines) {
  EXPECT_EQ(found("a.json", "[{\"text\": \"one\"}]").format, FileFormat::JsonArray);
  EXPECT_EQ(found("a.json", "\xEF\xBB\xBF\n [1, 2]").format, FileFormat::JsonArray);
  EXPECT_EQ(found("a.json", "{\"text\": \"one\"}\n").format, FileFormat::JsonLines);
  EXPECT_EQ(found("A.JSON", "\n{\"body\": 1}\n\n{\"body\": 2}").format, FileFormat::JsonLines);
  const std::string long_line = "{\"text\": \"" + std::string(100'000, 'x') + "\"}\n";
  EXPECT_EQ(found("a.json", long_line + long_line).format, FileFormat::JsonLines);
  for (const char* text :
       {"{\n  \"text\": \"one object\"\n}\n", "{\"name\": \"one line\"}\n", "3\n", "{\"a\": 1}\nmore"}) {
    EXPECT_EQ(found("a.json", text).format, FileFormat::Text) << text;
  }
  EXPECT_EQ(found("a.txt", "[{\"text\": \"one\"}]").format, FileFormat::Text);
}

TEST_F(FileFormats, JsonLinesInAJsonFileAreDocuments) {
  write(path("a.json"), "{\"text\": \"first\"}\n{\"text\": \"second\"}\n");
  EXPECT_EQ(drawn_from({path("a.json")}), "first|second|");
  EXPECT_EQ(drawn_from({folder_}), "first|second|");
  write(path("a.json"), "{\"body\": \"first\"}\n{\"body\": \"second\"}\n");
  EXPECT_NE(message({path("a.json")}).find(path("a.json") + ":1: must be a JSON object with a string \"text\""),
            std::string::npos);
}

TEST_F(FileFormats, NamedFilesOfOtherFormatsAreRefusedTogether) {
  write(path("a.json"), "[{\"text\": \"one\"}]");
  write(path("b.jsonl"), "\x1f\x8b\x08\0\0\0"s);
  write(path("c.txt"), wide(u"text", 2, false));
  write(path("d"), "PAR1\x15\x04 rows PAR1"s);
  const std::string rows = "write its rows as a .jsonl file, one JSON object with the text per line";
  EXPECT_EQ(message({path("a.json"), path("b.jsonl"), path("c.txt"), path("d")}),
            cat("data.paths = ", path("a.json"),
                ": is a JSON array: give its elements as a .jsonl file, one JSON object per line (`jq -c '.[]'` writes "
                "them)\ndata.paths = ",
                path("b.jsonl"), ": is compressed (gzip): give the output of `gzip -dc`\ndata.paths = ", path("c.txt"),
                ": is UTF-16: give the output of `iconv -f UTF-16LE -t UTF-8`\ndata.paths = ", path("d"),
                ": is a table of columns (Parquet): ", rows));
}

TEST_F(FileFormats, FoldersPassThemOverByNameButNotFilesNamedAsLines) {
  write(path("a.txt"), "A");
  write(path("b.txt.gz"), "\x1f\x8b\x08\0\0\0"s);
  write(path("c.json"), "[1]");
  write(path("d.txt"), "");
  std::filesystem::create_directory(path("other"));
  std::filesystem::create_directory_symlink(path("other"), path("e"));
  std::filesystem::create_symlink(path("gone"), path("f"));
  const auto list = list_documents({.paths = {folder_}});
  EXPECT_EQ(list.documents.size(), 1u);
  EXPECT_EQ(list.passed_over, (PassedOver{{"gzip", {path("b.txt.gz")}},
                                          {"JSON array", {path("c.json")}},
                                          {"empty", {path("d.txt")}},
                                          {"linked", {path("e"), path("f")}}}));
  write(path("z.jsonl"), "\x28\xb5\x2f\xfd\x24\0"s);
  EXPECT_EQ(message({folder_}),
            cat("data.paths = ", path("z.jsonl"), ": is compressed (zstd): give the output of `zstd -dc`"));
}

TEST_F(FileFormats, ABadByteOfALineInAFolderIsNamed) {
  write(path("a.jsonl"), "{\"text\": \"one\"}\n");
  write(path("b.jsonl"), "{\"text\": \"two\"}\n{\"text\": \"thr\xff\"}\n");
  const std::string said = message({folder_});
  EXPECT_NE(said.find(path("b.jsonl") + ":2: is not JSON"), std::string::npos) << said;
}

TEST(PassedOverFiles, TheSentenceNamesTenOfAReason) {
  PassedOver many;
  for (int i = 10; i < 25; ++i) many["binary"].insert(cat("f", i));
  EXPECT_EQ(sentence(many),
            "passed over in folders: 15 binary (f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, ...)");
  EXPECT_EQ(sentence({{"hidden", {"\x1b[2J"}}}), "passed over in folders: 1 hidden (\\x1b[2J)");
  EXPECT_EQ(sentence({}), "");
}

}  // namespace
}  // namespace braid::tokenize::file_format_test
