// Predictions beside measurements, from the lines of a run.
#include "braid/report/predicted.h"

#include <gtest/gtest.h>

#include <sstream>

#include "braid/report/run_page.h"

namespace braid::report::predicted_test {
namespace {

constexpr const char* kPredicted =
    R"({"kind":"prediction","step_seconds":0.1,"seconds":{"compute":0.1},"bubble_fraction":0.25,"sync_bytes":2048,"memory_bytes":{"parameters":[1024.0,512.0],"optimizer":[0.0,0.0]},"peak_memory_bytes":[2048.0,1024.0]}
)";
constexpr const char* kSteps =
    R"({"kind":"run","first_step":0}
{"kind":"step","step":1,"seconds":9,"bubble_fraction":0.9,"sync_bytes":8192,"peak_memory_bytes":[1024.0,4096.0]}
{"kind":"memory","step":1,"peak_bytes":{"parameters":[1024.0,2048.0],"optimizer":[0.0,0.0],"other":[7.0,7.0]}}
{"kind":"step","step":2,"seconds":0.08,"bubble_fraction":0.2,"sync_bytes":0,"peak_memory_bytes":[1024.0,4096.0]}
)";

RunRecord read(const std::string& text) {
  std::istringstream lines(text);
  return read_run_record(lines);
}

TEST(Foreseen, TheFirstStepDoesNotCountAndTheFullestRankDoes) {
  EXPECT_EQ(predicted_table(predicted_rows(read(std::string(kSteps) + kPredicted))),
            "                          predicted  measured   difference\n"
            "step                         100 ms     80 ms      +25.0 %\n"
            "bubble                          25%       20%  +5.0 points\n"
            "gradients sent in a step    2.0 KiB   4.0 KiB      -50.0 %\n"
            "peak memory                 2.0 KiB   4.0 KiB      -50.0 %\n"
            "  parameters                1.0 KiB   2.0 KiB      -50.0 %\n");
}

TEST(Foreseen, OfARunThatWentOnTheLastStartCounts) {
  const std::string again = R"({"kind":"run","first_step":2}
{"kind":"step","step":3,"seconds":5,"bubble_fraction":0.9,"sync_bytes":1024,"peak_memory_bytes":[1024.0,4096.0]}
{"kind":"step","step":4,"seconds":0.2,"bubble_fraction":0.5,"sync_bytes":1024,"peak_memory_bytes":[1024.0,4096.0]}
)";
  const std::string table = predicted_table(predicted_rows(read(kSteps + again + kPredicted)));
  EXPECT_NE(table.find("100 ms    200 ms"), std::string::npos) << table;
  EXPECT_NE(table.find("2.0 KiB   1.0 KiB      +100.0 %"), std::string::npos) << table;
}

TEST(Foreseen, ThePredictionOfAnEarlierStartIsForgotten) {
  const std::string again = R"({"kind":"run","first_step":2}
{"kind":"step","step":3,"seconds":5,"bubble_fraction":0.9,"sync_bytes":1024,"peak_memory_bytes":[1024.0,4096.0]}
{"kind":"step","step":4,"seconds":0.2,"bubble_fraction":0.5,"sync_bytes":1024,"peak_memory_bytes":[1024.0,4096.0]}
)";
  EXPECT_TRUE(predicted_rows(read(std::string(kSteps) + kPredicted + again)).empty());
}

TEST(Foreseen, NothingIsSaidWhereNothingWasPredictedOrMeasured) {
  EXPECT_TRUE(predicted_rows(read(kSteps)).empty());
  EXPECT_TRUE(predicted_rows(read(kPredicted)).empty());
}

TEST(Foreseen, StandsOnThePage) {
  RunPage page{"run", "", read(std::string(kSteps) + kPredicted), {}, {}};
  EXPECT_NE(run_page(page).find("<th>peak memory</th><td>2.0 KiB</td><td>4.0 KiB</td><td>-50.0 %</td>"),
            std::string::npos);
  page.record = read(kSteps);
  EXPECT_EQ(run_page(page).find("Predicted and measured"), std::string::npos);
}

TEST(Foreseen, DataAndModelParallelismStandBesideEachOther) {
  const char* kCompared =
      R"({"kind":"comparison","ways":{"data":{"copied":"the <model>","sent_bytes":1024,"step_seconds":0.5},"pipe":{"sent":"activations","sent_bytes":2048}}}
)";
  const std::string text = run_page({"run", "", read(std::string(kSteps) + kCompared), {}, {}});
  // Each cell says what it is, for screens on which a row is a block of lines.
  EXPECT_NE(text.find("<tr><th>data</th><td data-title=\"every rank has\">the &lt;model&gt;</td>"), std::string::npos);
  EXPECT_NE(text.find("<td class=\"number\" data-title=\"memory\">\u2013</td><td class=\"number\" "
                      "data-title=\"time of a step\">0.5 s</td></tr>"),
            std::string::npos);
  EXPECT_LT(text.find("<th>data</th>"), text.find("<th>pipe</th>"));
  EXPECT_EQ(run_page({"run", "", read(kSteps), {}, {}}).find("Data and model parallelism"), std::string::npos);
}

}  // namespace
}  // namespace braid::report::predicted_test
