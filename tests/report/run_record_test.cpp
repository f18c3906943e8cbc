// Metrics read back: whole runs, resumed runs, runs that died while they wrote.
#include "braid/report/run_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <utility>

namespace braid::report::run_record_test {
namespace {

RunRecord read(const std::string& text) {
  std::istringstream lines(text);
  return read_run_record(lines);
}

constexpr char kRun[] =
    R"({"kind":"run","parameters":10,"bigram_entropy":2.5,"first_step":0,"environment":{"host":"h","cores":"2"}}
{"kind":"step","step":1,"loss":5.5,"mfu":null,"sample_hash":"ab","peak_memory_bytes":[10.0,20.0]}
{"kind":"memory","step":1,"peak_bytes":{"parameters":[1.0,2.0],"other":[3.0,4.0]}}
{"kind":"peak","flops_per_second":1e9,"source":"measured","size":256}
{"kind":"step","step":2,"loss":4.5,"layer_grad_norms":{"embedding":0.5,"blocks.0":null,"head":2},"mfu":0.5,"peak_memory_bytes":[11.0,21.0]}
{"kind":"evaluation","step":2,"validation_loss":4.25,"validation_loss_per_byte":1.5}
{"kind":"checkpoint","step":2,"directory":"out/step-2"}
)";

TEST(RunRecord, AWholeRun) {
  const RunRecord record = read(kRun);
  EXPECT_EQ(record.start.at("parameters"), 10);
  EXPECT_EQ(record.start.at("bigram_entropy"), 2.5);
  EXPECT_EQ(record.environment, (std::vector<std::pair<std::string, std::string>>{{"host", "h"}, {"cores", "2"}}));
  EXPECT_EQ(record.steps.at("loss"), (Series{{1, 5.5}, {2, 4.5}}));
  EXPECT_EQ(record.steps.at("mfu"), (Series{{2, 0.5}}));
  using Layer = std::pair<std::string, Series>;
  EXPECT_EQ(record.layer_grad_norms, (std::vector<Layer>{{"embedding", {{2, 0.5}}}, {"head", {{2, 2}}}}));
  EXPECT_EQ(record.validation, (Series{{2, 4.25}}));
  EXPECT_EQ(record.validation_per_byte, (Series{{2, 1.5}}));
  EXPECT_EQ(record.peak_flops, 1e9);
  EXPECT_EQ(record.peak_source, "measured");
  EXPECT_EQ(record.peak_memory, (std::vector<double>{11, 21}));
  ASSERT_EQ(record.memory.size(), 2u);
  EXPECT_EQ(record.memory[0].first, "parameters");
  EXPECT_EQ(record.memory[1].second, (std::vector<double>{3, 4}));
  EXPECT_EQ(record.checkpoints[0], (std::pair<int64_t, std::string>{2, "out/step-2"}));
  EXPECT_EQ(record.num_steps(), 2);
  EXPECT_EQ(record.last("loss"), 4.5);
  EXPECT_TRUE(std::isnan(record.last("nothing")));
  EXPECT_EQ(record.num_damaged_lines, 0);
}

TEST(RunRecord, AResumeReplacesWhatCameAfter) {
  const RunRecord record = read(std::string(kRun) +
                                "{\"kind\":\"run\",\"first_step\":1}\n"
                                "{\"kind\":\"step\",\"step\":2,\"loss\":4.0}\n"
                                "{\"kind\":\"step\",\"step\":3,\"loss\":3.0}\n");
  EXPECT_EQ(record.first_steps, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(record.steps.at("loss"), (Series{{1, 5.5}, {2, 4.0}, {3, 3.0}}));
  for (const auto& [layer, norms] : record.layer_grad_norms) EXPECT_TRUE(norms.empty()) << layer;
  EXPECT_TRUE(record.validation.empty());
  EXPECT_TRUE(record.validation_per_byte.empty());
  EXPECT_TRUE(record.checkpoints.empty());
  EXPECT_EQ(record.num_steps(), 3);
}

TEST(RunRecord, ANewRunInTheSameFolderStandsAlone) {
  const RunRecord record = read(std::string(kRun) + "{\"kind\":\"run\",\"first_step\":0}\n");
  EXPECT_TRUE(record.steps.at("loss").empty());
  EXPECT_EQ(record.num_steps(), 0);
}

// Cut anywhere, the whole lines before the cut are read as ever and the piece behind them is counted.
TEST(RunRecord, EveryTruncationIsRead) {
  const std::string whole = kRun;
  std::string lines, piece;  // of the text so far
  for (const char next : whole) {
    const bool whole_line = next == '\n';
    const RunRecord record = read(lines + piece);
    EXPECT_EQ(record.num_damaged_lines, piece.empty() || whole_line ? 0 : 1) << piece;
    if (!whole_line) {
      EXPECT_EQ(record.steps, read(lines).steps) << piece;
    }
    piece += next;
    if (next == '\n') lines += std::exchange(piece, "");
  }
  EXPECT_EQ(lines, whole);
  EXPECT_EQ(read(lines).num_damaged_lines, 0);
  EXPECT_EQ(read(whole + "{\"kind\":\"st\n{\"kind\":\"step\",\"step\":3,\"loss\":1.0}\n").last("loss"), 1.0);
}

TEST(RunRecord, OddLinesAreCountedNotBelieved) {
  const RunRecord record = read(
      "[]\n12\n\"text\"\n{}\n{\"kind\":7}\n{\"kind\":\"step\"}\n{\"kind\":\"step\",\"step\":\"x\"}\n\xff\xfe\n"
      "{\"kind\":\"memory\",\"peak_bytes\":3}\n{\"kind\":\"checkpoint\",\"step\":1}\n{\"kind\":\"run\",\"first_step\":"
      "\"a\"}\n"
      "{\"kind\":\"run\",\"environment\":[]}\n\n{\"kind\":\"of the future\",\"x\":1}\n");
  // All but those that are lawful: an environment that is an empty list, a blank line, a kind of the future.
  EXPECT_EQ(record.num_damaged_lines, 11);
  EXPECT_EQ(record.first_steps, (std::vector<int64_t>{0}));
  EXPECT_TRUE(record.steps.empty());
  EXPECT_TRUE(record.memory.empty());
  EXPECT_TRUE(record.checkpoints.empty());
}

TEST(RunRecord, LinesWithANulOrARepeatedKeyAreDamaged) {
  using namespace std::string_literals;
  const RunRecord record = read(
      "{\"kind\":\"step\",\"step\":1,\"loss\":1.0}\0{\"kind\":\"step\"}\n{\"kind\":\"step\",\"step\":2,\"loss\":2.0,\"loss\":3.0}\n"s);
  EXPECT_EQ(record.num_damaged_lines, 2);
  EXPECT_TRUE(record.steps.empty());
}

}  // namespace
}  // namespace braid::report::run_record_test
