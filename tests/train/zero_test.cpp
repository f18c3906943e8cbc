// ZeRO trains the serial model: whatever is sharded, over whatever ranks. Its memory and its traffic are what the
// formulas say (Rajbhandari et al., SC 2020, sections 3.1, 5 and 7).
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/mesh/device_mesh.h"
#include "braid/param/memory_account.h"
#include "tests/support/sampled.h"
#include "tests/train/layout_run.h"

namespace braid::train::zero_test {
namespace {

struct ZeroLayout {
  int zero = 1;
  MeshSpec mesh;
  int group = 0;
};

std::ostream& operator<<(std::ostream& out, const ZeroLayout& layout) {
  const MeshSpec& mesh = layout.mesh;
  out << "zero" << layout.zero << "_data" << mesh.data << "_pipe" << mesh.pipe << "_tensor" << mesh.tensor;
  return layout.group > 0 ? out << "_group" << layout.group : out;
}

RunSpec spec_of(const ZeroLayout& layout) {
  RunSpec spec = tiny_spec(6, 16);
  spec.mesh = layout.mesh;
  spec.sync.zero = layout.zero;
  spec.sync.zero_group = layout.group;
  return spec;
}

std::vector<ZeroLayout> layouts() {
  std::vector<ZeroLayout> all;
  for (const int zero : {1, 2, 3}) {
    for (const int data : {1, 2, 4, 8}) all.push_back({zero, {.data = data}});
    all.push_back({zero, {.pipe = 2, .data = 2}});
    all.push_back({zero, {.data = 2, .tensor = 2}});
    all.push_back({zero, {.pipe = 2, .data = 2, .tensor = 2}});
    all.push_back({zero, {.data = 4}, 2});
    all.push_back({zero, {.data = 8}, 4});
    all.push_back({zero, {.pipe = 2, .data = 4}, 2});
  }
  return sampled(all, 3);
}

const LayoutResult& serial(const std::string& dtype, const std::string& reduction) {
  static std::map<std::string, LayoutResult> known;
  const auto [found, fresh] = known.try_emplace(dtype + reduction);
  if (fresh) {
    RunSpec spec = tiny_spec(6, 16);
    spec.train.dtype = value_of<DType>(dtype).value();
    spec.train.reduction = value_of<Reduction>(reduction).value();
    found->second = train_layout(spec);
  }
  return found->second;
}

class ZeroTransparency : public testing::TestWithParam<ZeroLayout> {};

TEST_P(ZeroTransparency, LossGradientsAndParametersAreTheSerialOnes) {
  const LayoutResult &want = serial("float64", "fast"), got = train_layout(spec_of(GetParam()));
  for (size_t i = 0; i < want.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i], want.losses[i], 1e-10);
    EXPECT_NEAR(got.grad_norms[i], want.grad_norms[i], 1e-10);
  }
  EXPECT_LT(largest_difference(got.first_gradients, want.first_gradients), 1e-10);
  EXPECT_LT(largest_difference(got.params, want.params), 1e-10);
}

INSTANTIATE_TEST_SUITE_P(EveryLayout, ZeroTransparency, testing::ValuesIn(layouts()),
                         testing::PrintToStringParamName());

// Bits are promised at one tensor size.
std::vector<ZeroLayout> layouts_of_bits() {
  std::vector<ZeroLayout> all = layouts();
  std::erase_if(all, [](const ZeroLayout& layout) { return layout.mesh.tensor > 1; });
  return all;
}

class ZeroBits : public testing::TestWithParam<ZeroLayout> {};

TEST_P(ZeroBits, AreThoseOfOneRank) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    SCOPED_TRACE(dtype);
    RunSpec spec = spec_of(GetParam());
    spec.train.dtype = value_of<DType>(dtype).value();
    spec.train.reduction = Reduction::Reproducible;
    const LayoutResult &want = serial(dtype, "reproducible"), got = train_layout(spec);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_EQ(got.grad_norms, want.grad_norms);
    EXPECT_TRUE(same_bits(got.params, want.params));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryLayout, ZeroBits, testing::ValuesIn(layouts_of_bits()),
                         testing::PrintToStringParamName());

TEST(Zero, CombinesWithRecomputeAndSchedules) {
  const LayoutResult& want = serial("float64", "fast");
  struct Variant {
    const char *schedule, *recompute;
    GatherUnit gather;
  };
  std::vector<Variant> all;
  for (const char* schedule : {"1f1b", "interleaved", "zb-v"}) {
    for (const char* recompute : {"none", "selective", "every:2"}) {
      for (const GatherUnit gather : {GatherUnit::Block, GatherUnit::Stage})
        all.push_back({schedule, recompute, gather});
    }
  }
  for (const auto& [schedule, recompute, gather] : sampled(all, 5)) {
    SCOPED_TRACE(cat(schedule, " ", recompute, " ", gather));
    RunSpec spec = spec_of({3, {.pipe = 2, .data = 2}});
    spec.pipeline.schedule = schedule;
    spec.memory.recompute = recompute;
    spec.sync.zero_gather = gather;
    EXPECT_LT(largest_difference(train_layout(spec).params, want.params), 1e-10);
  }
}

// Sizes that ranks add up.
struct Sizes {
  int64_t flat = 0, owned = 0;
  param::MemoryUse memory;
  int64_t bytes_per_step = 0;
};

Sizes measured(const RunSpec& spec) {
  param::install_memory_accounting();
  Sizes sizes;
  const data::Corpus corpus = tiny_corpus();
  run_ranks(mesh::DeviceMesh(spec.mesh).num_ranks(), [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    param::account_memory_to(world.rank());
    param::reset_memory_peak(world.rank());
    Trainer trainer(spec, corpus, world);
    trainer.step();
    const StepReport report = trainer.step();
    if (world.rank() != 0) return;
    sizes = {trainer.model().params().num_flat(), trainer.model().params().num_owned(), report.memory[0],
             report.sync_bytes};
  });
  return sizes;
}

int64_t bytes(const Sizes& sizes, param::MemoryCategory category) {
  return sizes.memory.bytes[static_cast<size_t>(category)];
}

// Bytes per parameter with n ranks, of 4-byte gradients and masters: parameters, gradients, optimizer.
//
//   float32     none 4 4 8      1: 4 4 8/n      2: 4 4/n 8/n      3: 4/n 4/n 8/n
//   bfloat16    none 2 4 12     1: 2 4 12/n     2: 2 4/n 12/n     3: 2/n 4/n 12/n
TEST(Zero, MemoryIsWhatTheFormulasSay) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    const bool narrow = std::string(dtype) == "bfloat16";
    for (const int data : {2, 4}) {
      for (const int zero : {0, 1, 2, 3}) {
        SCOPED_TRACE(cat(dtype, " data ", data, " zero ", zero));
        RunSpec spec = spec_of({zero, {.data = data}});
        spec.train.dtype = value_of<DType>(dtype).value();
        const Sizes sizes = measured(spec);
        const int64_t all = sizes.flat, part = all / data;
        EXPECT_EQ(sizes.owned, zero >= 1 ? part : all);
        EXPECT_EQ(bytes(sizes, param::MemoryCategory::Parameters), (narrow ? 2 : 4) * (zero >= 3 ? part : all));
        EXPECT_EQ(bytes(sizes, param::MemoryCategory::Gradients), 4 * (zero >= 2 ? part : all));
        EXPECT_EQ(bytes(sizes, param::MemoryCategory::Optimizer), (narrow ? 12 : 8) * (zero >= 1 ? part : all));
      }
    }
  }
}

// Elements sent per step, in units of P (n - 1) / n, with m microbatches: table of Zero. A tied table is gathered twice
// per pass, for the embedding and for the head.
TEST(Zero, TrafficIsWhatTheFormulasSay) {
  for (const int data : {2, 4}) {
    const int m = 16 / data;
    for (const int zero : {0, 1, 2, 3}) {
      SCOPED_TRACE(cat("data ", data, " zero ", zero));
      RunSpec spec = spec_of({zero, {.data = data}});
      spec.model.output_weights = OutputWeights::Untied;
      spec.train.dtype = DType::Float32;
      const Sizes sizes = measured(spec);
      const int64_t unit = 4 * sizes.flat / data * (data - 1);
      const int factor = zero <= 1 ? 2 : zero == 2 ? m + 1 : 3 * m;
      EXPECT_EQ(sizes.bytes_per_step, factor * unit);
    }
  }
}

// One stage stays gathered from its first use to its last: one all-gather per step in place of 2 m.
TEST(Zero, AStageThatStaysWholeIsGatheredOnce) {
  RunSpec spec = spec_of({3, {.data = 2}});
  spec.model.output_weights = OutputWeights::Untied;
  spec.train.dtype = DType::Float32;
  spec.sync.zero_gather = GatherUnit::Stage;
  const Sizes sizes = measured(spec);
  const int m = 8;
  EXPECT_EQ(sizes.bytes_per_step, (1 + m) * (4 * sizes.flat / 2));
}

// Returns the sizes of a model of so many blocks.
Sizes blocks_gathered_one_by_one(int layers) {
  RunSpec spec = spec_of({3, {.data = 4}});
  spec.model.layers = layers;
  return measured(spec);
}

// While blocks are gathered one by one, the memory in flight is that of two of them and of gradients and messages on
// their way, not of the model: as much of 24 blocks as of 6, and less than 6 blocks in all.
TEST(Zero, OnlyABlockOrTwoAreWholeAtATime) {
  const Sizes few = blocks_gathered_one_by_one(6), many = blocks_gathered_one_by_one(24);
  const auto peak = [](const Sizes& sizes) {
    return sizes.memory.peak_bytes[static_cast<size_t>(param::MemoryCategory::Communication)];
  };
  const int64_t block = 8 * (many.flat - few.flat) / (24 - 6);
  EXPECT_LT(peak(many), 6 * block);
  EXPECT_LT(peak(many) - peak(few), block);
}

// A copy is sharded over neighbouring data ranks, each with all its context ranks.
TEST(ZeroGroups, AreNeighbouringDataRanksWithTheirContextRanks) {
  RunSpec spec = tiny_spec(4, 8);
  spec.model.context = 8;
  spec.mesh = {.data = 4, .context = 2};
  spec.sync.zero = 1;
  spec.sync.zero_group = 2;
  on_every_rank(spec, [](Trainer& trainer) {
    Communicator& shards = *trainer.groups().shards();
    ASSERT_EQ(shards.size(), 4);
    const int64_t data = trainer.groups().at[mesh::Axis::Data];
    EXPECT_EQ(comm::agree(shards, "data rank", data, ReduceOp::Max) / 2, data / 2);
    EXPECT_EQ(comm::agree(shards, "data rank", data, ReduceOp::Min) / 2, data / 2);
  });
}

}  // namespace
}  // namespace braid::train::zero_test
