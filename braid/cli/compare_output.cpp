// A paragraph for each row of the table.
#include "braid/cli/compare_output.h"

#include <algorithm>

#include "braid/base/counted.h"
#include "braid/base/text.h"
#include "braid/cli/plan_output.h"
#include "braid/plan/parallelism_table.h"
#include "braid/plan/units.h"
#include "braid/report/markup.h"

namespace braid::cli {
namespace {

std::string memory_of(const plan::ParallelismRow& row) {
  const auto most = static_cast<double>(row.prediction.fullest().total());
  return cat(fixed(most / plan::kGib, 2), " GiB", row.prediction.fits() ? "" : ", too much");
}

std::string range_in_words(const plan::Prediction& prediction) {
  if (prediction.range.is_known()) return "";
  const double seconds = prediction.step_seconds();
  return cat(" (", report::short_number(prediction.range.least * seconds), " to ",
             report::short_number(prediction.range.most * seconds), " s)");
}

std::string row_text(const plan::ParallelismRow& row) {
  std::string text = cat(row.name, "\n  copied:   ", row.copied, "\n  split:    ", row.split,
                         "\n  sent:     ", row.when, "; ", human_bytes(row.sent_bytes), " by a rank in a step, ",
                         human_bytes(row.sent_bytes_on_twice), " on twice as many (grows ", row.growth, ")\n");
  if (!row.possible) return text + "  this run cannot be split so\n";
  const plan::StepSeconds& seconds = row.prediction.seconds;
  return text + cat("  memory:   ", memory_of(row),
                    " on the fullest rank\n  step:     ", report::short_number(seconds.total()), " s",
                    range_in_words(row.prediction), ", computing ", report::percent(seconds.compute / seconds.total()),
                    " of it\n");
}

}  // namespace

std::string compare_text(const RunSpec& run, const plan::Cluster& cluster) {
  const int ranks = static_cast<int>(std::max<int64_t>(2, cluster.num_devices()));
  std::string text = cat(rates_note(cluster, plan::FormulaSet::Braid), counted(ranks, "rank"), " along one axis\n");
  for (const plan::ParallelismRow& row : plan::parallelism_table(run, cluster, ranks)) text += row_text(row);
  return text;
}

}  // namespace braid::cli
