// Text becomes the same prepared data however often the work was killed, and trains as the text itself would.
#include "braid/tokenize/prepare.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "braid/base/errors.h"
#include "braid/data/prepared_corpus.h"
#include "braid/data/sampler.h"
#include "braid/tokenize/document_reader.h"
#include "braid/tokenize/text_corpus.h"
#include "tests/support/sample_stream.h"
#include "tests/support/scratch_folder.h"
#include "tests/tokenize/drawn_tokens.h"
#include "tests/tokenize/dying_file_system.h"
#include "tests/tokenize/prepare_requests.h"

namespace braid::tokenize::prepare_test {
namespace {

TEST_F(PrepareTest, KilledAtAnyCallItGoesOnToTheSameBytes) {
  auto what = request({"text", "lines.jsonl"});
  what.weights = {1, 3};
  what.shard_tokens = 1000;
  run(what);
  const auto wanted = contents("out");
  ASSERT_GT(wanted.size(), 8u);  // several parts
  const int stride = std::getenv("BRAID_FULL") ? 1 : 2;
  int kills = 0, went_on = 0;
  for (int when = 0;; when += stride) {
    std::filesystem::remove_all(path("out"));
    try {
      DyingFileSystem files(when);
      prepare(what, files, [](const PrepareStatus&) {});
      break;
    } catch (const Killed&) {
      ++kills;
    }
    const auto result = run(what);
    went_on += result.first.num_tokens > 0;
    ASSERT_EQ(contents("out"), wanted) << "killed at call " << when;
  }
  EXPECT_GT(kills, 40);
  EXPECT_GT(went_on, kills / 2);
}

TEST_F(PrepareTest, TrainsAsTheTextItselfWould) {
  const auto result = run(request({"text"}));
  const data::Corpus prepared = corpus();
  const data::Corpus text = read_text({.paths = {path("text")}, .validation_fraction = 0.2}, *byte_tokenizer());
  EXPECT_EQ(drawn(prepared.train), drawn(text.train));
  EXPECT_EQ(drawn(prepared.validation), drawn(text.validation));
  EXPECT_EQ(prepared.num_documents, text.num_documents);
  EXPECT_EQ(stream_hash(data::Sampler(prepared.train, 16, 3), 16, 0, 500),
            stream_hash(data::Sampler(text.train, 16, 3), 16, 0, 500));
  EXPECT_EQ(result.last.num_documents, 12);
  EXPECT_EQ(result.last.text_bytes, result.last.total_bytes);
}

TEST_F(PrepareTest, LinesTrainAsTheyWouldPrepared) {
  run(request({"text", "lines.jsonl"}));
  const data::Corpus prepared = corpus();
  const DataSpec spec{.paths = {path("text"), path("lines.jsonl")}, .validation_fraction = 0.2};
  const data::Corpus text = read_text(spec, *byte_tokenizer());
  EXPECT_EQ(drawn(prepared.train), drawn(text.train));
  EXPECT_EQ(drawn(prepared.validation), drawn(text.validation));
  EXPECT_EQ(prepared.num_documents, text.num_documents);
  EXPECT_EQ(text.origin.sources[0].documents, 12 + 61);
}

TEST_F(PrepareTest, ASingleTextHoldsOutItsEnd) {
  write(path("only"), "0123456789");
  EXPECT_EQ(run(request({"only"})).last.num_documents, 1);
  EXPECT_EQ(run(request({"only"})).last.num_documents, 1);  // as the folder says
  EXPECT_EQ(drawn(corpus().train), "01234567|");
  EXPECT_EQ(drawn(corpus().validation), "89|");
  EXPECT_EQ(corpus().num_documents, 1);
}

TEST_F(PrepareTest, LinesAreDocumentsAndTheSameTextIsAlwaysOnTheSameSide) {
  const std::string lines = content(path("lines.jsonl"));
  write(path("twice.jsonl"), lines + "\n" + lines);
  run(request({"twice.jsonl"}));
  const data::Corpus both = corpus();
  const std::string train = drawn(both.train), validation = drawn(both.validation);
  EXPECT_EQ(both.num_documents, 2 * 61);
  for (int i = 0; i < 60; ++i) {
    const std::string text = cat("line ", i, "\n", story(i), "|");
    const auto times = [&](const std::string& all) {
      int count = 0;
      for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++count;
      return count;
    };
    EXPECT_EQ(std::max(times(train), times(validation)), 2) << i;
    EXPECT_EQ(std::min(times(train), times(validation)), 0) << i;
  }
  EXPECT_NEAR(static_cast<double>(std::count(validation.begin(), validation.end(), '|')) / (2 * 61), 0.2, 0.15);
}

TEST_F(PrepareTest, ThreadsChangeNothing) {
  auto what = request({"lines.jsonl", "text"});
  run(what);
  what.threads = 5;
  what.out = path("threads");
  run(what);
  EXPECT_EQ(contents("threads"), contents("out"));
}

TEST_F(PrepareTest, WeightsBecomeSharesOfSamples) {
  auto what = request({"text", "lines.jsonl"});
  what.weights = {3, 1};
  run(what);
  auto folders = data::prepared_folders({path("out")});
  const auto blend = data::prepared_corpus(folders, {}).train;
  ASSERT_EQ(blend.size(), 2u);
  EXPECT_DOUBLE_EQ(blend[0].weight / blend[1].weight, 3);
  what.out = path("plain");
  what.weights = {};
  run(what);
  folders = data::prepared_folders({path("out"), path("plain")});
  const auto nested = data::prepared_corpus(folders, {1, 4}).train;  // 3/4 and 1/4 of the first share
  ASSERT_EQ(nested.size(), 3u);
  EXPECT_DOUBLE_EQ(nested[0].weight, 0.75);
  EXPECT_DOUBLE_EQ(nested[1].weight, 0.25);
  EXPECT_DOUBLE_EQ(nested[2].weight, 4);
  const auto one = data::prepared_corpus({folders[1], folders[1]}, {}).train;
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].tokens->num_tokens(), 2 * data::num_tokens(data::prepared_corpus({folders[1]}, {}).train));
}

TEST_F(PrepareTest, EveryProblemIsNamedAtOnce) {
  auto what = request({"text", "gone", "hollow"});
  std::filesystem::create_directory(path("hollow"));
  what.tokenizer = path("no.json");
  what.shard_tokens = 0;
  what.validation_fraction = 2;
  what.weights = {1, -1};
  const std::string said = message(what);
  for (const std::string part : {"--tokenizer", "gone: does not exist", "hollow: holds no file",
                                 "--shard-tokens = 0: must be at least 1", "--validation-fraction = 2",
                                 "--weight = 2 given: must be given once", "--weight = -1: must be from 1e-9 to 1e9"}) {
    EXPECT_NE(said.find(part), std::string::npos) << part << "\nin\n" << said;
  }
  what = request({"text"});
  what.out = path("text/out");
  EXPECT_NE(message(what).find("must not lie inside the input"), std::string::npos);
  write(path("bad.jsonl"), "{\"text\": \"good\"}\nno json\n{\"text\": 5}\n[]\n{\"text\": \"good too\"}\n");
  EXPECT_EQ(message(request({"bad.jsonl"})),
            cat(path("bad.jsonl"), ":2: is not JSON: invalid literal\n", path("bad.jsonl"),
                ":3: must be a JSON object with a string \"text\"\n", path("bad.jsonl"),
                ":4: must be a JSON object with a string \"text\"\nbraid data prepare, train-bpe and train-wordpiece "
                "pass over such lines "
                "with --skip-bad-lines, and count them"));
  // A key that stands in two objects stands in none twice.
  write(path("twice.jsonl"), R"({"text": "a", "meta": {"text": "b"}})"
                             "\n"
                             R"({"text": "a", "id": 1, "text": "b"})"
                             "\n");
  what = request({"twice.jsonl"});
  what.out = path("twice");
  EXPECT_NE(message(what).find("twice.jsonl:2: has the key \"text\" twice in one object\nbraid"), std::string::npos);
}

TEST_F(PrepareTest, ANulEndsNoLine) {
  using namespace std::string_literals;
  write(path("nul.jsonl"), "{\"text\": \"a\"}\0{\"text\": \"lost\"}\n{\"text\": \"b\"}\n"s);
  EXPECT_NE(message(request({"nul.jsonl"})).find("nul.jsonl:1: is not JSON: it has a NUL\nbraid"), std::string::npos);
}

TEST_F(PrepareTest, ALineAboveTheLimitIsNamedWhateverIsSkipped) {
  const std::string lines = "{\"text\": \"a\"}\nno json\n" + std::string(100, 'x') + "\n{\"text\": \"b\"}\n";
  write(path("long.jsonl"), lines);
  for (const auto& [bad_lines, start, problems] : {std::tuple(BadLines::Named, size_t{0}, size_t{2}),
                                                   {BadLines::Skipped, size_t{0}, size_t{1}},
                                                   {BadLines::Named, lines.find("no json"), size_t{2}}}) {
    DocumentReader reader({{path("long.jsonl"), std::ssize(lines)}}, {.bad_lines = bad_lines, .line_limit = 99});
    reader.seek(0, static_cast<int64_t>(start));
    try {
      while (reader.next()) continue;
      ADD_FAILURE() << "no error";
    } catch (const ConfigError& error) {
      ASSERT_EQ(error.problems().size(), problems);
      EXPECT_EQ(error.problems().back().key, path("long.jsonl:3"));
      EXPECT_EQ(error.problems().back().rule, "must be a line of at most 99 bytes");
    }
  }
}

// Also those behind a place where an earlier call stopped: the reader is put into the middle of a file.
TEST_F(PrepareTest, BadLinesAreNamedOrCounted) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += cat("{\"text\": \"", story(i), "\"}\n", i % 10 == 9 ? "no json\n" : "");
  write(path("bad.jsonl"), lines);
  auto what = request({"bad.jsonl"});
  const std::string said = message(what);
  for (const int line : {11, 22, 33, 44}) {
    EXPECT_NE(said.find(cat("bad.jsonl:", line, ": is not JSON")), std::string::npos) << said;
  }
  DocumentReader reader({{path("bad.jsonl"), static_cast<int64_t>(lines.size())}}, {});
  reader.seek(0, static_cast<int64_t>(lines.find("no json")));
  try {
    reader.next();
    ADD_FAILURE() << "no error";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 5u);
    EXPECT_EQ(error.problems()[0].key, path("bad.jsonl:11"));
    EXPECT_EQ(error.problems()[3].key, path("bad.jsonl:44"));
  }

  std::string worse;
  for (int i = 0; i < 30; ++i) worse += "no json\n";
  write(path("worse.jsonl"), worse);
  auto other = request({"worse.jsonl"});
  other.out = path("worse");
  const std::string twenty = message(other);
  EXPECT_EQ(std::count(twenty.begin(), twenty.end(), '\n'), 20) << twenty;  // the last line says what to do

  std::filesystem::remove_all(path("out"));
  what.bad_lines = BadLines::Skipped;
  const auto result = run(what);
  EXPECT_EQ(result.manifest.sources[0].bad_lines, 4);
  EXPECT_EQ(result.last.num_documents, 40);
  const auto wanted = contents("out");
  for (const int when : {30, 60, 90}) {
    std::filesystem::remove_all(path("out"));
    DyingFileSystem files(when);
    EXPECT_THROW(prepare(what, files, [](const PrepareStatus&) {}), Killed);
    run(what);
    EXPECT_EQ(contents("out"), wanted) << "killed at call " << when;
  }
}

TEST_F(PrepareTest, WhatIsFinishedIsSaidToBe) {
  const auto what = request({"text"});
  EXPECT_FALSE(run(what).was_complete);
  const auto wanted = contents("out");
  const auto again = run(what);
  EXPECT_TRUE(again.was_complete);
  EXPECT_EQ(again.last.num_documents, 12);
  EXPECT_EQ(contents("out"), wanted);
}

// Written by braid 0.1.0 before manifests named their digests.
TEST_F(PrepareTest, TheFirstVersionIsReadAndMarksKeepItsDigests) {
  std::filesystem::copy(BRAID_SOURCE_DIR "/tests/data/data/prepared_v1", path("old"));
  const data::Corpus old = corpus("old");
  EXPECT_EQ(data::num_tokens(old.train), 21);
  ASSERT_EQ(old.origin.sources.size(), 2u);
  EXPECT_EQ(old.origin.sources[0],
            (ContentMark{"source0-train-00000.tokens", 1, 4224, {0x22e98650d2ffa83a, DigestKind::Xxh64}}));
  // The same text prepared again has digests of another kind, and is known all the same.
  const std::string tokens = drawn(old.train), held_out = drawn(old.validation);
  std::filesystem::create_directory(path("again"));
  write(path("again/a"), tokens.substr(0, tokens.size() - 1));
  write(path("again/b"), held_out.substr(0, held_out.size() - 1));
  auto what = request({"again"});
  what.validation_fraction = 0.5;
  run(what);
  const data::Corpus young = corpus();
  EXPECT_NE(young.origin.sources, old.origin.sources);
  EXPECT_EQ(data::marks_like(old.origin.sources, young.origin), old.origin.sources);
  EXPECT_EQ(data::marks_like(young.origin.sources, old.origin), young.origin.sources);
  write(path("again/b"), std::string(held_out.size() - 1, 'b'));
  what.out = path("other");
  run(what);
  const auto other = data::marks_like(old.origin.sources, corpus("other").origin);
  EXPECT_EQ(other[0], old.origin.sources[0]);
  EXPECT_NE(other[1], old.origin.sources[1]);
  EXPECT_EQ(other[1].bytes, old.origin.sources[1].bytes);

  std::string text = content(path("old/manifest.json"));
  text[text.find("4224")] = '5';
  write(path("old/manifest.json"), text);
  EXPECT_THROW(corpus("old"), IoError);
}

}  // namespace
}  // namespace braid::tokenize::prepare_test
