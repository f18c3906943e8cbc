// memory.recompute under every schedule: the bits of training without it, and peaks of activations that fall.
#include "braid/spec/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>

#include "braid/base/text.h"
#include "braid/param/memory_account.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/schedule/generators.h"
#include "braid/spec/partition.h"
#include "braid/train/memory_limit.h"
#include "braid/train/run.h"
#include "tests/support/sampled.h"
#include "tests/train/layout_run.h"

namespace braid::train::recompute_test {
namespace {

constexpr int kMicrobatches = 8;

RunSpec two_ranks(const std::string& schedule) {
  RunSpec spec = tiny_spec(6, kMicrobatches);
  spec.model.dropout = 0.2;
  spec.train.dtype = DType::Float32;
  spec.train.steps = 2;
  spec.mesh.pipe = 2;
  spec.pipeline.schedule = schedule;
  if (schedule.starts_with("pipedream")) spec.model.output_weights = OutputWeights::Untied;
  return spec;
}

// A policy on the first stage, another on the next, and so on.
std::string in_turn(const std::string& first, const std::string& next, int num_stages) {
  std::vector<std::string> entries;
  for (int stage = 0; stage < num_stages; ++stage) entries.push_back(stage % 2 == 0 ? first : next);
  return joined(entries, ",");
}

// Returns lists for stages of `blocks` blocks: the last of each, or the first.
std::string lists(const std::vector<int>& blocks) {
  std::vector<std::string> entries;
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    entries.push_back(cat("blocks:", stage % 2 == 0 ? blocks[stage] - 1 : 0));
  }
  return joined(entries, ",");
}

void expect_bits_of_none(RunSpec spec) {
  const LayoutResult want = train_layout(spec);
  const int stages = spec::num_stages(spec);
  const std::vector<std::string> policies = {in_turn("full", "none", stages), "full",
                                             lists(spec::stage_blocks(spec, stages)), "every:2", "selective"};
  for (const std::string& policy : sampled(policies, 2)) {
    SCOPED_TRACE(cat(spec.pipeline.schedule, ", ", policy, ", ", spec.train.dtype, ", ", spec.train.reduction));
    spec.memory.recompute = policy;
    const LayoutResult got = train_layout(spec);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_EQ(got.grad_norms, want.grad_norms);
    EXPECT_TRUE(same_bits(got.first_gradients, want.first_gradients));
    EXPECT_TRUE(same_bits(got.params, want.params));
  }
}

std::vector<std::string> possible_schedules() {
  std::vector<std::string> names;
  for (const ScheduleTraits& traits : schedule_traits()) {
    if (schedule_problems(traits.name, {2, kMicrobatches}).empty()) names.emplace_back(traits.name);
  }
  return names;
}

class Recomputing : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Schedules, Recomputing, testing::ValuesIn(possible_schedules()), [](const auto& info) {
  std::string name = info.param == "1f1b" ? "one_f_one_b" : info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(Recomputing, GivesTheBitsOfKeeping) {
  expect_bits_of_none(two_ranks(GetParam()));
  RunSpec reproducible = two_ranks(GetParam());
  reproducible.train.reduction = Reduction::Reproducible;
  if (!GetParam().starts_with("pipedream")) expect_bits_of_none(reproducible);
}

TEST(RecomputingInOtherTypes, GivesTheBitsOfKeeping) {
  for (const char* dtype : {"float64", "bfloat16", "float16"}) {
    RunSpec spec = two_ranks("zb-h1");
    spec.model.layers = 4;
    spec.train.dtype = value_of<DType>(dtype).value();
    expect_bits_of_none(spec);
    spec.model.family = ModelFamily::Llama;
    spec.model.kv_heads = 3;
    expect_bits_of_none(spec);
  }
}

// "auto" under limits from what "none" needs down to what no other policy is below.
TEST(RecomputingWithinALimit, GivesTheBitsOfKeeping) {
  RunSpec spec = two_ranks("gpipe");  // every microbatch is in flight
  spec.memory.optimizer = Tier::Resident;
  spec.data.paths = {"text"};  // a legal run has some, and tokens for all bytes
  spec.model.vocab = 257;
  const LayoutResult want = train_layout(spec);
  const int64_t most = plan::nominal_prediction(spec)->most_bytes();
  spec.memory.recompute = "full";
  const int64_t least = plan::nominal_prediction(spec)->most_bytes();
  spec.memory.recompute = "auto";
  for (const Problem& problem : spec::problems(spec, host_limits())) ADD_FAILURE() << text(problem);
  std::set<std::string> chosen;
  for (const int fifth : {0, 1, 2, 3, 4, 5}) {
    spec.memory.limit_gb = std::ldexp(static_cast<double>(least + (most - least) * fifth / 5 + 1), -30);
    const RunSpec resolved = within_memory_limit(spec, host_limits());
    SCOPED_TRACE(resolved.memory.recompute);
    chosen.insert(resolved.memory.recompute);
    const LayoutResult got = train_layout(resolved);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_TRUE(same_bits(got.first_gradients, want.first_gradients));
    EXPECT_TRUE(same_bits(got.params, want.params));
  }
  EXPECT_GE(chosen.size(), 3) << "limits would not differ";
}

// The peaks of activations of pipeline rank 0 in the last of two steps.
int64_t peak_of_first_rank(const std::string& recompute) {
  RunSpec spec = two_ranks("1f1b");
  spec.model.dropout = 0;
  spec.train.dtype = DType::Float64;
  spec.memory.recompute = recompute;
  int64_t peak = 0;
  std::mutex lock;
  param::install_memory_accounting();
  on_every_rank(spec, [&](Trainer& trainer) {
    const int rank = trainer.groups().world.rank();
    param::account_memory_to(rank);
    trainer.step();
    param::reset_memory_peak(rank);
    const StepReport report = trainer.step();
    const std::scoped_lock hold(lock);
    if (rank == 0) peak = report.memory[0].peak_bytes[static_cast<int>(param::MemoryCategory::Activations)];
  });
  return peak;
}

// Four blocks on the first rank, two microbatches in flight. A stream is 6 tokens of 24 features; a block keeps 16 of
// them, 9 with "selective", and nothing but its input with "full", where one block at a time comes back, with gradients
// of no more than a block's.
TEST(RecomputingPeaks, FallToWhatIsKept) {
  constexpr int64_t kStream = 6 * 24 * 8, kInFlight = 2, kBlocks = 4, kOneBlock = 2 * 16;
  const int64_t none = peak_of_first_rank("none"), selective = peak_of_first_rank("selective"),
                full = peak_of_first_rank("full");
  EXPECT_GE(none, kInFlight * kBlocks * 16 * kStream);
  EXPECT_GE(selective, kInFlight * kBlocks * 9 * kStream);
  EXPECT_LE(selective, (kInFlight * kBlocks * 10 + kOneBlock) * kStream);
  EXPECT_LE(full, (kInFlight * kBlocks + kOneBlock) * kStream);
}

}  // namespace
}  // namespace braid::train::recompute_test
