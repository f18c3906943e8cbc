// Predictions beside published measurements on A100s. The preset's efficiency was fitted with four rows in view, which
// published_rows.cpp marks; all others are predicted.
#include "tests/plan/published_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "braid/base/text.h"
#include "braid/plan/cluster_presets.h"
#include "braid/plan/predict_run.h"
#include "braid/spec/problems.h"

namespace braid::plan::published_rows_test {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

Prediction predicted(const PublishedRow& row) {
  Cluster cluster = cluster_preset(row.cluster).value();
  DeviceGroup& devices = cluster.devices.front();
  devices.nodes = (row.devices + devices.per_node - 1) / devices.per_node;
  return predict_run(row.run, cluster, {row.formulas});
}

double fullest_gb(const Prediction& prediction) { return static_cast<double>(prediction.fullest().total()) / kGiB; }

struct Errors {
  double mean = 0, worst = 0;
  std::string worst_row;
};

// Relative, of the rows that were not fitted.
template <class Of>
Errors errors(const std::vector<PublishedRow>& rows, Of relative) {
  Errors found;
  int count = 0;
  for (const PublishedRow& row : rows) {
    if (row.fitted) continue;
    const double error = std::abs(relative(row));
    ++count;
    found.mean += error;
    if (error > found.worst) found.worst = error, found.worst_row = row.name;
  }
  found.mean /= count;
  return found;
}

Errors time_errors(const std::vector<PublishedRow>& rows) {
  return errors(rows, [](const PublishedRow& row) { return predicted(row).step_seconds() / row.seconds - 1; });
}

TEST(PublishedRows, MayBePlanned) {
  int fitted = 0;
  for (const auto& rows : {ptdp_rows(), korthikanti_rows(), zero_bubble_rows(), h100_rows()}) {
    for (const PublishedRow& row : rows) {
      fitted += row.fitted;
      const auto found = spec::problems(row.run, {.max_ranks = row.devices, .purpose = spec::Purpose::Plan});
      EXPECT_TRUE(found.empty()) << row.name << ": " << text(found.front());
      EXPECT_EQ(num_ranks(row.run.mesh), row.devices) << row.name;
    }
  }
  EXPECT_EQ(fitted, 5);
}

// The target is 8 % for each paper; beside it the figures reached.
TEST(PublishedRows, StepTimes) {
  const std::tuple<std::vector<PublishedRow>, double, double, const char*> papers[] = {
      {ptdp_rows(), 0.0530, 0.0805, "7.5B"},
      {korthikanti_rows(), 0.0293, 0.0581, "22B, full recompute"},
      {zero_bubble_rows(), 0.0121, 0.0415, "14.6B, interleaved, m = 128"},
  };
  for (const auto& [rows, mean, worst, worst_row] : papers) {
    const Errors found = time_errors(rows);
    SCOPED_TRACE(rows.front().source);
    EXPECT_LT(found.mean, 0.08);
    EXPECT_NEAR(found.mean, mean, 5e-4);
    EXPECT_NEAR(found.worst, worst, 5e-4);
    EXPECT_EQ(found.worst_row, worst_row);
  }
}

// The target is 6 %. Qi et al., table 4; the first 1.5B rows are the worst: what their allocator keeps beside is not
// modelled.
TEST(PublishedRows, Memory) {
  std::vector<PublishedRow> rows = zero_bubble_rows();
  for (PublishedRow& row : rows) row.fitted = false;  // no constant was chosen for memory
  const Errors found =
      errors(rows, [](const PublishedRow& row) { return fullest_gb(predicted(row)) / row.memory_gb - 1; });
  EXPECT_LT(found.mean, 0.06);
  EXPECT_NEAR(found.mean, 0.0337, 5e-4);
  EXPECT_NEAR(found.worst, 0.0838, 5e-4) << found.worst_row;
}

// In each model x microbatches the schedule that was fastest is predicted to be; and of the four in order, how many
// pairs are.
TEST(PublishedRows, TheFastestZeroBubbleSchedule) {
  std::map<std::pair<int, int>, std::vector<PublishedRow>> cases;
  for (const PublishedRow& row : zero_bubble_rows()) cases[{row.devices, row.run.train.batch}].push_back(row);
  EXPECT_EQ(cases.size(), 6u);
  int in_order = 0;
  for (const auto& [key, rows] : cases) {
    const auto fastest = [&](auto seconds) { return std::ranges::min_element(rows, {}, seconds)->name; };
    const auto foreseen = [](const PublishedRow& row) { return predicted(row).step_seconds(); };
    EXPECT_EQ(fastest(foreseen), fastest([](const PublishedRow& row) { return row.seconds; }));
    for (const PublishedRow& a : rows) {
      for (const PublishedRow& b : rows) in_order += a.seconds < b.seconds && foreseen(a) < foreseen(b);
    }
  }
  EXPECT_EQ(in_order, 33);  // of 36
}

bool is_float8(const PublishedRow& row) { return row.name.ends_with("float8"); }

// One row of 8B on 8 GPUs gave one constant, the share of the rates at 500 W.
TEST(PublishedRows, H100sComeOutWithinAFifth) {
  for (const PublishedRow& row : h100_rows()) {
    if (is_float8(row)) continue;
    const Prediction prediction = predicted(row);
    EXPECT_NEAR(prediction.step_seconds() / row.seconds, 1, 0.2) << row.name;
    if (row.memory_gb > 0) {
      EXPECT_NEAR(fullest_gb(prediction) / row.memory_gb, 1, 0.2) << row.name;
    }
  }
}

// Megatron-LM has no scores of Llama models in memory, and recomputes less than torchtitan's selective checkpointing.
TEST(PublishedRows, MegatronsMemoryOfLlamaIsNearTorchtitans) {
  PublishedRow row = h100_rows().at(1);
  row.formulas = FormulaSet::Megatron;
  EXPECT_NEAR(fullest_gb(predicted(row)) / row.memory_gb, 1, 0.2);
}

std::string table_row(const PublishedRow& row) {
  const Prediction prediction = predicted(row);
  const double seconds = prediction.step_seconds(), error = 100 * (seconds / row.seconds - 1);
  std::string memory = " | ";
  if (row.memory_gb > 0) memory = cat(fixed(row.memory_gb, 0), " | ", fixed(fullest_gb(prediction), 1));
  return cat("| ", row.name, row.fitted ? " (fitted)" : "", " | ", row.devices, " | ", fixed(row.seconds, 3), " | ",
             fixed(seconds, 3), " | ", error < 0 ? "" : "+", fixed(error, 1), " % | ", memory, " |\n");
}

std::string tables() {
  std::string all;
  for (const auto& rows : {ptdp_rows(), korthikanti_rows(), zero_bubble_rows(), h100_rows()}) {
    std::string source;
    for (const PublishedRow& row : rows) {
      if (row.source != source) {
        source = row.source;
        all += cat("\n## ", source,
                   "\n\n| row | devices | measured, s | predicted, s | error | measured, GiB | predicted, GiB "
                   "|\n|---|---|---|---|---|---|---|\n");
      }
      all += table_row(row);
    }
  }
  return all;
}

TEST(PublishedRows, AreDocumented) {
  std::ifstream file(BRAID_SOURCE_DIR "/docs/published_rows.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string page = text.str(), found = tables();
  const std::string anew = testing::TempDir() + "published_rows.md";
  if (!page.ends_with(found)) std::ofstream(anew) << found;
  EXPECT_TRUE(page.ends_with(found)) << "the tables of docs/published_rows.md are to be those of " << anew;
}

}  // namespace
}  // namespace braid::plan::published_rows_test
