// Every cell of the table of combinations: what it calls supported trains the serial model, what it says changes
// semantics runs and says so, what it refuses is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "braid/base/text.h"
#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/spec/combine.h"
#include "braid/spec/problems.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::combination_test {
namespace {

using enum spec::Feature;

// One rank, no feature: untied, unclipped, float64. Enough layers and microbatches for every schedule of two ranks.
RunSpec plain_spec() {
  RunSpec spec = tiny_spec(6, 8);
  spec.model.layers = 4;
  spec.data.paths = {"text"};  // never opened: the corpus is made up
  spec.model.output_weights = OutputWeights::Untied;
  spec.optimizer.clip_norm = 0;
  spec.train.steps = 2;
  return spec;
}

struct Switch {
  spec::Feature feature;
  void (*on)(RunSpec& spec);
};

void pipeline(RunSpec& spec, const char* schedule) {
  spec.mesh.pipe = 2;
  spec.pipeline.schedule = schedule;
}

void data_ranks(RunSpec& spec) { spec.mesh.data = 2, spec.train.batch = 16; }

const Switch kSwitches[] = {
    {FlushPipeline, [](RunSpec& spec) { pipeline(spec, "1f1b"); }},
    {ChunkedPipeline, [](RunSpec& spec) { pipeline(spec, "interleaved"); }},
    {ZeroBubblePipeline, [](RunSpec& spec) { pipeline(spec, "zb-h2"); }},
    {VShapedPipeline, [](RunSpec& spec) { pipeline(spec, "zb-v"); }},
    {MirroredPipeline, [](RunSpec& spec) { pipeline(spec, "dualpipe"); }},
    {AsynchronousPipeline, [](RunSpec& spec) { pipeline(spec, "pipedream"); }},
    {TiedEmbedding, [](RunSpec& spec) { spec.model.output_weights = OutputWeights::Tied; }},
    {Clipping, [](RunSpec& spec) { spec.optimizer.clip_norm = 0.5; }},
    {Dropout, [](RunSpec& spec) { spec.model.dropout = 0.3; }},
    {DocumentAttention, [](RunSpec& spec) { spec.data.attention = AttentionMask::Document; }},
    {LossScaling, [](RunSpec& spec) { spec.train.dtype = DType::Float16; }},
    {NarrowWeights, [](RunSpec& spec) { spec.train.dtype = DType::BFloat16; }},
    {SelectiveRecompute, [](RunSpec& spec) { spec.memory.recompute = "selective"; }},
    {SegmentRecompute, [](RunSpec& spec) { spec.memory.recompute = "every:2"; }},
    {Data, data_ranks},
    {UnequalShares, [](RunSpec& spec) { data_ranks(spec), spec.mesh.batch_shares = "3,1"; }},
    {Context, [](RunSpec& spec) { spec.mesh.context = 2, spec.model.context = 8; }},
    {Experts, [](RunSpec& spec) { spec.model.experts = 4; }},
    {Expert, [](RunSpec& spec) { spec.model.experts = 4, spec.mesh.expert = 2; }},
    {HostOptimizer, [](RunSpec& spec) { spec.memory.optimizer = Tier::Host; }},
    {DiskOptimizer, [](RunSpec& spec) { spec.memory.optimizer = Tier::Disk, spec.memory.paths = {"."}; }},
    {HostGradients, [](RunSpec& spec) { spec.memory.gradients = Tier::Host; }},
    {DiskGradients,
     [](RunSpec& spec) { spec.memory.optimizer = spec.memory.gradients = Tier::Disk, spec.memory.paths = {"."}; }},
    {HostParameters, [](RunSpec& spec) { spec.memory.parameters = Tier::Host; }},
    {DiskParameters,
     [](RunSpec& spec) { spec.memory.optimizer = spec.memory.parameters = Tier::Disk, spec.memory.paths = {"."}; }},
    {HostActivations, [](RunSpec& spec) { spec.memory.activations = Tier::Host; }},
    {DiskActivations, [](RunSpec& spec) { spec.memory.activations = Tier::Disk, spec.memory.paths = {"."}; }},
    {Tensor, [](RunSpec& spec) { spec.mesh.tensor = 2; }},
    {CopiedKeyHeads,
     [](RunSpec& spec) { spec.mesh.tensor = 2, spec.model.family = ModelFamily::Llama, spec.model.kv_heads = 1; }},
    {SequenceParallel, [](RunSpec& spec) { spec.mesh.tensor = 2, spec.mesh.sequence_parallel = true; }},
    {Reproducible, [](RunSpec& spec) { spec.train.reduction = Reduction::Reproducible; }},
    {Compression, [](RunSpec& spec) { spec.sync.compression = CompressionKind::BFloat16; }},
    {ShardedOptimizer, [](RunSpec& spec) { data_ranks(spec), spec.sync.zero = 1; }},
    {ShardedGradients, [](RunSpec& spec) { data_ranks(spec), spec.sync.zero = 2; }},
    {ShardedParameters, [](RunSpec& spec) { data_ranks(spec), spec.sync.zero = 3; }},
    {LocalUpdates, [](RunSpec& spec) { spec.sync.replication = ReplicationKind::LocalSgd, spec.sync.period = 2; }},
    {ParameterServers, [](RunSpec& spec) { spec.sync.replication = ReplicationKind::ParameterServer; }},
    {MatrixUpdates, [](RunSpec& spec) { spec.optimizer.kind = OptimizerKind::Muon; }},
    {NarrowStates,
     [](RunSpec& spec) {
       spec.optimizer.state_dtype = StateType::BFloat16;
       if (spec.train.dtype == DType::Float64) spec.train.dtype = DType::BFloat16;
     }},
    {RatesByName, [](RunSpec& spec) { spec.optimizer.groups = {{.match = "*.weight", .lr_scale = 0.5}}; }},
};

bool is_on(const RunSpec& spec, spec::Feature feature) {
  const auto on = spec::features(spec);
  return std::find(on.begin(), on.end(), feature) != on.end();
}

// The same function, samples and numbers on one rank.
RunSpec serial(RunSpec spec) {
  spec.mesh = {};
  spec.pipeline = {};
  spec.memory = {};
  spec.sync = {};
  return spec;
}

const LayoutResult& serial_result(const RunSpec& spec) {
  static std::vector<std::pair<RunSpec, LayoutResult>> known;
  for (const auto& [key, result] : known) {
    if (key == spec) return result;
  }
  known.emplace_back(spec, train_layout(spec));
  return known.back().second;
}

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// Reproducible mode promises the bits of 16-bit weights, whatever the optimizer, unless tensor ranks share a key head.
// Every other layout agrees up to rounding, which plain descent does not enlarge.
void expect_serial_training_in(Reduction reduction, RunSpec spec) {
  spec.train.reduction = reduction;
  const bool narrow = is_on(spec, NarrowWeights);
  const bool has_bits =
      narrow && reduction == Reduction::Reproducible && spec.mesh.context == 1 && !is_on(spec, CopiedKeyHeads);
  if (narrow && !has_bits && !is_on(spec, MatrixUpdates)) spec.optimizer = plain_descent(spec.optimizer);
  const LayoutResult &want = serial_result(serial(spec)), got = train_layout(spec);
  if (has_bits) {
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_TRUE(same_bits(got.params, want.params));
  } else {
    Rounding rounding = rounding_of(spec.train.dtype);
    if (is_on(spec, ParameterServers)) rounding.gradients = kUnbounded;  // a worker's are of its own replica
    expect_near(got, want, rounding);
  }
}

void expect_serial_training(const RunSpec& spec) {
  if (is_on(spec, NarrowWeights) && !is_on(spec, UnequalShares)) {
    expect_serial_training_in(Reduction::Reproducible, spec);
  }
  expect_serial_training_in(spec.train.reduction, spec);
}

// changed_semantics_test.cpp proves what the rows change. Before its first update every run computes the serial loss,
// but for asynchronous pipelines, which update within the step.
void expect_first_loss(const RunSpec& spec) {
  const LayoutResult got = train_layout(spec);
  ASSERT_EQ(got.losses.size(), 2u);
  if (is_on(spec, AsynchronousPipeline)) return;
  const double want = serial_result(serial(spec)).losses[0];
  EXPECT_NEAR(got.losses[0], want, rounding_of(spec.train.dtype).losses * want);
}

void expect_verdict(const RunSpec& spec, const spec::Combination& pair) {
  RunSpec judged = spec;
  judged.model.vocab = 0;  // of the made-up corpus, which no tokenizer knows
  const auto found = spec::problems(judged, {.max_ranks = 8});
  const auto says = [&](const std::string& text) { return text.find(pair.why) != text.npos; };
  if (spec::refused(pair.verdict)) {
    EXPECT_TRUE(std::any_of(found.begin(), found.end(), [&](const Problem& problem) { return says(problem.rule); }));
    return;
  }
  for (const Problem& problem : found) ADD_FAILURE() << text(problem);
  if (!found.empty()) return;
  if (pair.verdict == spec::Verdict::ChangesSemantics) {
    const auto said = spec::notes(spec);
    EXPECT_TRUE(std::any_of(said.begin(), said.end(), says));
    expect_first_loss(spec);
    return;
  }
  const bool same_function =
      std::none_of(spec::combinations().begin(), spec::combinations().end(), [&](const spec::Combination& other) {
        return other.verdict == spec::Verdict::ChangesSemantics && is_on(spec, other.a) && is_on(spec, other.b) &&
               (other.a == AsynchronousPipeline || other.a == LocalUpdates || other.a == Compression);
      });
  if (same_function) {
    expect_serial_training(spec);
  } else {
    EXPECT_EQ(train_layout(spec).losses.size(), 2u);  // what it trains, tests of its own prove
  }
}

// Every fifth supported one, and all of them under BRAID_FULL: each trains twice.
TEST(Combinations, EveryCellIsAsTheTableSays) {
  int num_cells = 0;
  for (const Switch& a : kSwitches) {
    for (const Switch& b : kSwitches) {
      if (a.feature > b.feature) continue;
      RunSpec spec = plain_spec();
      a.on(spec);
      b.on(spec);
      if (!is_on(spec, a.feature) || !is_on(spec, b.feature)) continue;  // two pipelines, two types
      SCOPED_TRACE(cat(spec::text(a.feature), " and ", spec::text(b.feature)));
      spec::Combination pair = spec::combination(a.feature, b.feature);
      for (const spec::Feature alone : {a.feature, b.feature}) {
        if (spec::refused(spec::combination(alone, alone).verdict)) pair = spec::combination(alone, alone);
      }
      if (pair.verdict != spec::Verdict::Supported || full_run() || num_cells % 5 == 0) expect_verdict(spec, pair);
      ++num_cells;
    }
  }
  EXPECT_GT(num_cells, 120);
}

class TableCombinations : public ScratchFolder {};

TEST_F(TableCombinations, ATableOfActionsCombinesAsItsScheduleDoes) {
  write(path("table.csv"), schedule::to_csv(make_schedule("zb-v", {2, 8})));
  for (const Switch& other : kSwitches) {
    RunSpec spec = plain_spec();
    other.on(spec);
    pipeline(spec, ("file:" + path("table.csv")).c_str());
    if (!is_on(spec, other.feature) || spec::refused(spec::combination(other.feature, other.feature).verdict)) continue;
    SCOPED_TRACE(spec::text(other.feature));
    expect_verdict(spec, spec::combination(TablePipeline, other.feature));
  }
}

// Those that no configuration switches on, and ranks that are processes (this one runs threads), are tested where they
// live.
TEST(Combinations, EveryFeatureOfAConfigurationIsSwitchedHere) {
  for (int i = 0; i < spec::kNumFeatures; ++i) {
    const auto feature = static_cast<spec::Feature>(i);
    const bool switched = std::any_of(std::begin(kSwitches), std::end(kSwitches),
                                      [&](const Switch& known) { return known.feature == feature; });
    const bool elsewhere = feature == TablePipeline || feature == ProcessRanks || spec::key(feature).empty();
    EXPECT_NE(switched, elsewhere) << spec::text(feature);
  }
}

}  // namespace
}  // namespace braid::train::combination_test
