// Damaged files: whatever the bytes, the answer is a run or a ConfigError.
#include <gtest/gtest.h>

#include "braid/base/seeds.h"
#include "braid/spec/describe.h"
#include "braid/spec/parse.h"

namespace braid::spec::damaged_text_test {
namespace {

enum class Answer { Run, Problems };

Answer answer(const std::string& toml, const std::vector<std::string>& words = {}) {
  try {
    parse_run(toml, "run.toml", words);
    return Answer::Run;
  } catch (const ConfigError& error) {
    EXPECT_FALSE(error.problems().empty());
    EXPECT_GT(std::string(error.what()).size(), 0u);
    return Answer::Problems;
  }
}

std::string good_text() {
  RunSpec spec;
  spec.data.paths = {"corpus.txt", "more/"};
  spec.mesh.pipe = 2;
  spec.pipeline.partition = "2,4";
  spec.train.sample_prompt = "def \"f\"(x):\n";
  return to_toml(spec);
}

TEST(DamagedText, CutAnywhere) {
  const std::string good = good_text();
  int num_runs = 0;
  for (size_t size = 0; size <= good.size(); ++size) num_runs += answer(good.substr(0, size)) == Answer::Run;
  EXPECT_GT(num_runs, 10) << "most of what follows [data] and [pipeline] can be left out";
  EXPECT_EQ(answer(good), Answer::Run);
}

TEST(DamagedText, ByteFlippedAnywhere) {
  const std::string good = good_text();
  for (size_t i = 0; i < good.size(); ++i) {
    for (int copy = 0; copy < 3; ++copy) {
      std::string bad = good;
      bad[i] = static_cast<char>(random_bits(i, copy));
      answer(bad);
    }
  }
}

// Letters that toml++ takes for unreachable where they stand next to blanks and line ends.
TEST(DamagedText, LettersBeyondAscii) {
  const std::string text = "# \xc3\xbc\n[data]\npaths = [ \"\xc3\xbc\xc2\xa7\" ] # \xc2\xb0\n";
  EXPECT_EQ(parse_run(text, "run.toml", {}).data.paths, (std::vector<std::string>{"\xc3\xbc\xc2\xa7"}));
  const std::string folded = "[train]\nout = \"\"\"\\\n\xc2\xa7 1\"\"\"\n";
  EXPECT_EQ(parse_run(text + folded, "run.toml", {}).train.out, "\xc2\xa7 1");
  EXPECT_EQ(answer(text + "\xcc\xaa"), Answer::Problems);
  EXPECT_EQ(answer(text + "lr\xc3\xbc = 1"), Answer::Problems);
}

TEST(DamagedText, BytesWithoutSense) {
  for (uint64_t key = 0; key < 300; ++key) {
    std::string bytes(random_bits(key, 0) % 80, ' ');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(random_bits(key, i + 1));
    EXPECT_EQ(answer(bytes), Answer::Problems);
    EXPECT_EQ(answer("", {"data.paths=[a]", "train.out=" + bytes, bytes}), Answer::Problems);
    answer("", {"data.paths=" + bytes, "pipeline.partition=[" + bytes + "]", "optimizer.lr=" + bytes});
  }
  const std::string deep(100000, '[');
  EXPECT_EQ(answer("data.paths = " + deep), Answer::Problems);
  EXPECT_EQ(answer("", {"pipeline.partition=" + deep}), Answer::Problems);
}

}  // namespace
}  // namespace braid::spec::damaged_text_test
