// Refusals of prepared folders: other requests, changed texts, folders of others, damaged files.
#include <filesystem>

#include "braid/base/errors.h"
#include "braid/data/prepared_corpus.h"
#include "tests/tokenize/dying_file_system.h"
#include "tests/tokenize/prepare_requests.h"

namespace braid::tokenize::prepare_refusals_test {
namespace {

TEST_F(PrepareTest, AnotherRequestOrChangedTextIsRefused) {
  const auto what = request({"text"});
  run(what);
  auto other = what;
  other.shard_tokens = 301;
  other.validation_fraction = 0.1;
  const std::string said = message(other);
  EXPECT_NE(said.find("--shard-tokens = 301: must be as in"), std::string::npos) << said;
  EXPECT_NE(said.find("--validation-fraction = 0.1: must be as in"), std::string::npos) << said;
  EXPECT_EQ(message(what), "no error");

  std::filesystem::create_directory(path("foreign"));
  write(path("foreign/thesis.tex"), "mine");
  other = what;
  other.out = path("foreign");
  EXPECT_NE(message(other).find("must be a new or empty folder"), std::string::npos);
}

// Finished or stopped on the way.
TEST_F(PrepareTest, FilesThatChangedAreNamed) {
  const auto what = request({"text"});
  const std::string begun = path("out") + " was begun";
  for (const int stop : {-1, 40}) {
    std::filesystem::remove_all(path("out"));
    write(path("text/gone.txt"), "gone");
    write(path("text/3.txt"), story(3));
    std::filesystem::remove(path("text/new.txt"));
    try {
      DyingFileSystem files(stop);
      prepare(what, files, [](const PrepareStatus&) {});
    } catch (const Killed&) {
    }
    const auto before = contents("out");
    EXPECT_EQ(before.contains("manifest.json"), stop < 0);
    const auto time = std::filesystem::last_write_time(path("text/5.txt"));
    std::filesystem::last_write_time(path("text/5.txt"), time + std::chrono::seconds(1));
    if (stop < 0) {  // then the bytes themselves are compared
      EXPECT_EQ(message(what), "no error");
      std::string other = story(5);
      other.back() = '!';
      write(path("text/5.txt"), other);
      std::filesystem::last_write_time(path("text/5.txt"), time + std::chrono::seconds(1));
    }
    EXPECT_EQ(message(what), cat("INPUT = ", path("text/5.txt"), ": was changed after ", begun, "\n--out = ",
                                 path("out"), ": must be another folder, or removed, where files changed"));
    write(path("text/5.txt"), story(5));
    std::filesystem::last_write_time(path("text/5.txt"), time);
    write(path("text/3.txt"), std::string(999, 'x'));
    write(path("text/new.txt"), "new");
    std::filesystem::remove(path("text/gone.txt"));
    const std::string said = message(what);
    for (const std::string& part :
         {cat(path("text/3.txt"), ": has 999 bytes; it had ", story(3).size(), " when ", begun),
          cat(path("text/new.txt"), ": was not there when ", begun), cat(path("text/gone.txt"), ": is gone; ")}) {
      EXPECT_NE(said.find("INPUT = " + part), std::string::npos) << part << "\nin\n" << said;
    }
    EXPECT_EQ(contents("out"), before);
  }
}

// Folders of an older version: a finished one has its sizes compared, an unfinished one is refused.
TEST_F(PrepareTest, WithoutARecordOfItsInputs) {
  const auto what = request({"text"});
  run(what);
  std::filesystem::remove(path("out/inputs.json"));
  EXPECT_TRUE(run(what).was_complete);
  write(path("text/3.txt"), std::string(999, 'x'));
  EXPECT_NE(message(what).find("INPUT: has other files or sizes than when"), std::string::npos) << message(what);
  std::filesystem::remove_all(path("out"));
  DyingFileSystem files(40);
  EXPECT_THROW(prepare(what, files, [](const PrepareStatus&) {}), Killed);
  std::filesystem::remove(path("out/inputs.json"));
  EXPECT_NE(message(what).find("inputs.json is missing"), std::string::npos) << message(what);
}

// A bad line that ended a preparation may be skipped when it goes on; lines that were skipped are missing.
TEST_F(PrepareTest, SkippedLinesStaySkipped) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += cat("{\"text\": \"", story(i), "\"}\n", i == 35 ? "no json\n" : "");
  write(path("bad.jsonl"), lines);
  auto what = request({"bad.jsonl"});
  EXPECT_NE(message(what).find("bad.jsonl:37: is not JSON"), std::string::npos);
  what.bad_lines = BadLines::Skipped;
  EXPECT_EQ(run(what).manifest.sources[0].bad_lines, 1);
  EXPECT_EQ(message(what), "no error");
  what.bad_lines = BadLines::Named;
  EXPECT_EQ(message(what), cat("--skip-bad-lines: must be given as when ", path("out"),
                               " was begun, which has passed over 1 bad line (or name another --out)"));
  what.inputs = {path("lines.jsonl")};
  what.out = path("good");
  run(what);
  what.bad_lines = BadLines::Skipped;
  EXPECT_EQ(message(what), "no error");
}

// A name that no JSON can hold.
TEST_F(PrepareTest, AStrangeNameIsTheSameAgain) {
  const std::string name = "odd\x1b\xff\n.txt";
  write(path(name), "0123456789");
  EXPECT_FALSE(run(request({name})).was_complete);
  EXPECT_TRUE(run(request({name})).was_complete);
}

TEST_F(PrepareTest, UnfinishedMixedAndForeignFoldersAreRefused) {
  auto what = request({"text"});
  try {
    DyingFileSystem files(40);
    prepare(what, files, [](const PrepareStatus&) {});
  } catch (const Killed&) {
  }
  const auto problem = [](const std::vector<std::string>& paths) {
    try {
      data::prepared_folders(paths);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(problem({path("out")}).find("is not finished"), std::string::npos);
  run(what);
  EXPECT_EQ(problem({path("out")}), "");
  EXPECT_NE(problem({path("out"), path("text")}).find("text: must be prepared data like the others"),
            std::string::npos);
  EXPECT_TRUE(data::prepared_folders({path("text"), path("lines.jsonl")}).empty());
}

TEST_F(PrepareTest, EachFlippedByteOfAManifestIsFound) {
  run(request({"text"}));
  const std::string good = content(path("out/manifest.json"));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    EXPECT_THROW(data::parse_prepared_manifest("m", bad), IoError) << i;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_THROW(data::parse_prepared_manifest("m", good.substr(0, size)), IoError) << size;
  }
  EXPECT_EQ(data::manifest_json(data::parse_prepared_manifest("m", good)), good);
}

TEST_F(PrepareTest, AFileOfAnotherPreparationIsFound) {
  run(request({"text"}));
  auto other = request({"lines.jsonl"});
  other.out = path("other");
  run(other);
  std::filesystem::copy_file(path("other/source0-train-00000.tokens"), path("out/source0-train-00000.tokens"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THROW(corpus(), IoError);
}

}  // namespace
}  // namespace braid::tokenize::prepare_refusals_test
