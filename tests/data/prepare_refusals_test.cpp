// What prepared folders refuse: other requests, changed texts, folders of others, damaged files.
#include <filesystem>

#include "braid/base/errors.h"
#include "braid/data/prepared_corpus.h"
#include "tests/data/dying_file_system.h"
#include "tests/data/prepare_requests.h"

namespace braid::prepare_refusals_test {
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
  write(path("text/3.txt"), std::string(999, 'x'));
  EXPECT_NE(message(what).find("has other files or sizes"), std::string::npos);

  std::filesystem::create_directory(path("foreign"));
  write(path("foreign/thesis.tex"), "mine");
  other = what;
  other.out = path("foreign");
  EXPECT_NE(message(other).find("must be a new or empty folder"), std::string::npos);
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
      prepared_folders(paths);
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
  EXPECT_TRUE(prepared_folders({path("text"), path("lines.jsonl")}).empty());
}

TEST_F(PrepareTest, EachFlippedByteOfAManifestIsFound) {
  run(request({"text"}));
  const std::string good = content(path("out/manifest.json"));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    EXPECT_THROW(parse_prepared_manifest("m", bad), IoError) << i;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_THROW(parse_prepared_manifest("m", good.substr(0, size)), IoError) << size;
  }
  EXPECT_EQ(manifest_json(parse_prepared_manifest("m", good)), good);
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
}  // namespace braid::prepare_refusals_test
