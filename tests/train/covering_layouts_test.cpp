// Every pair of a layout's settings, in a covering array: each row trains the model of one rank. A sample of layouts is
// in the other tests of this folder; this one runs under BRAID_FULL.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/launch/launcher.h"
#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/schedule/generators.h"
#include "braid/spec/problems.h"
#include "braid/train/step_schedule.h"
#include "tests/support/sampled.h"
#include "tests/train/covering_array.h"
#include "tests/train/layout_run.h"

namespace braid::train::covering_layouts_test {
namespace {

constexpr double kBound = 1e-12, kMostSeconds = 3600;
constexpr int kMostRanks = 8, kMicrobatchesPerRank = 8;

// A user's family: attention and feed-forward layer read one norm and are added together.
model::BlockGraph parallel_layer(const ModelSpec& spec) {
  model::BlockBuilder block(spec, "btc");
  const int normed = block.norm(model::OpKind::RmsNorm, "norm").value();
  block.linear("attention.qkv", "[kmd|kd|kd]").bias().apply(model::OpKind::Rotary).attention();
  const int attended = block.linear("attention.projection", "c").value();
  block.from(normed).linear("mlp.gate_up", "[f|f]").swiglu().linear("mlp.down", "c");
  return block.plus(attended).dropout().join().build();
}

ModelFamily added_family() {
  model::Family family = model::families()[static_cast<size_t>(ModelFamily::Llama)];
  family.name = "parallel";
  family.traits.parts = 1;
  family.blocks.layer = parallel_layer;
  family.names = {};
  family.config = {};
  family.presets.clear();
  family.other_names.clear();
  return model::add_family(family);
}

const ModelFamily kOwnFamily = added_family();

const std::vector<int> kSizes{1, 2, 4};
const std::vector<ContextParallel> kForms{ContextParallel::Ring, ContextParallel::AllGather, ContextParallel::Ulysses,
                                          ContextParallel::UlyssesRing};
const std::vector<const char*> kRecompute{"none", "selective", "full", "every:2"};

enum Factor {
  kPipe,
  kData,
  kContext,
  kForm,
  kTensor,
  kSplit,
  kSchedule,
  kZero,
  kAgain,
  kDocuments,
  kDropout,
  kSums,
  kRanks,
  kFamily
};

std::vector<std::string> schedules() {
  std::vector<std::string> names{PipelineSpec().schedule};
  for (const ScheduleTraits& traits : schedule_traits()) {
    if (!traits.asynchronous() && traits.name != names.front()) names.emplace_back(traits.name);
  }
  return names;
}

std::vector<ModelFamily> families() { return {ModelFamily::Gpt2, ModelFamily::Llama, ModelFamily::Bert, kOwnFamily}; }

RunSpec run_of(const CoveringArray::Row& row) {
  const MeshSpec mesh{.pipe = kSizes[row[kPipe]],
                      .data = kSizes[row[kData]],
                      .context = kSizes[row[kContext]],
                      .tensor = kSizes[row[kTensor]],
                      .context_parallel = kForms[row[kForm]],
                      .ulysses_ranks = kForms[row[kForm]] == ContextParallel::UlyssesRing ? 2 : 0,
                      .sequence_parallel = row[kSplit] > 0};
  RunSpec run = tiny_spec(8, kMicrobatchesPerRank * mesh.data);
  run.mesh = mesh;
  run.model.family = families()[row[kFamily]];
  run.model.context = 16;
  if (row[kFamily] % 2 == 1) run.model.kv_heads = 4, run.model.ffn = 24;
  run.pipeline.schedule = schedules()[row[kSchedule]];
  run.sync.zero = static_cast<int>(row[kZero]);
  run.memory.recompute = kRecompute[row[kAgain]];
  run.data.paths = {"text"};  // never opened
  run.data.tokenizer = "made-up";
  if (row[kDocuments] > 0) run.data.attention = AttentionMask::Document;
  if (row[kDropout] > 0) run.model.dropout = 0.2;
  if (row[kSums] > 0) run.train.reduction = Reduction::Reproducible;
  run.run.ranks = row[kRanks] > 0 ? RanksAs::Processes : RanksAs::Threads;
  run.optimizer = plain_descent(run.optimizer);  // a difference of gradients stays one
  run.train.steps = 2;
  return run;
}

// Settings of an axis of one rank are one layout.
bool is_another_layout(const RunSpec& run) {
  const MeshSpec& mesh = run.mesh;
  if (mesh.context == 1 && mesh.context_parallel != ContextParallel::Ring) return false;
  if (mesh.context < kSizes.back() && mesh.context_parallel == ContextParallel::UlyssesRing) return false;
  return (mesh.tensor > 1 || !mesh.sequence_parallel) &&
         (mesh.pipe > 1 || run.pipeline.schedule == schedules().front());
}

bool is_legal(const CoveringArray::Row& row) {
  const RunSpec run = run_of(row);
  if (num_ranks(run.mesh) > kMostRanks || !is_another_layout(run)) return false;
  try {
    if (spec::has_problems(run, spec::any_hosts())) return false;
    refuse_faulty_schedule(run);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

// The numbers of tensors that a rank holds, by name; NaN: other ranks hold it.
struct NamedNumbers {
  std::string name;
  std::vector<double> numbers;
};
template <class Pack>
void members(Pack& pack, NamedNumbers& tensor) {
  pack(tensor.name, tensor.numbers);
}

struct RankResult {
  std::vector<double> losses;
  std::vector<NamedNumbers> first_gradients, params;
};
template <class Pack>
void members(Pack& pack, RankResult& result) {
  pack(result.losses, result.first_gradients, result.params);
}

std::vector<NamedNumbers> held(Trainer& trainer, Held what) {
  std::map<std::string, at::Tensor> global;
  collect(trainer, global, what);
  std::vector<NamedNumbers> all;
  for (const auto& [name, tensor] : global) {
    const double* const begin = tensor.contiguous().const_data_ptr<double>();
    all.push_back({name, {begin, begin + tensor.numel()}});
  }
  return all;
}

std::vector<RankResult> trained(const RunSpec& run) {
  const data::Corpus corpus = corpus_for(run);
  const auto body = [&](Communicator& world) {
    RankResult result;
    on_mesh(run, world, [&](const RunWorld& roles) {
      Trainer trainer(run, corpus, roles);
      for (int step = 0; step < run.train.steps; ++step) {
        result.losses.push_back(trainer.step().loss);
        if (step == 0) result.first_gradients = held(trainer, Held::Gradients);
      }
      result.params = held(trainer, Held::Weights);
    });
    return result;
  };
  return values_by_rank(launcher(run.run), static_cast<int>(num_ranks(run.mesh)), body, {.threads_per_rank = 1});
}

const RankResult& serial_result(RunSpec run) {
  static std::vector<std::pair<RunSpec, RankResult>> known;
  run.mesh = {};
  run.pipeline = {};
  run.sync = {};
  run.memory = {};
  run.run = {};
  for (const auto& [key, result] : known) {
    if (key == run) return result;
  }
  return known.emplace_back(run, trained(run).front()).second;
}

double largest_of(const std::vector<double>& numbers) {
  double largest = 0;
  for (const double number : numbers) largest = std::max(largest, std::abs(number));
  return largest;
}

// Compares what each rank holds, relative to `scale`. Some rank holds each number.
void expect_same(const std::vector<const std::vector<NamedNumbers>*>& ranks, const NamedNumbers& want, double scale) {
  std::vector<bool> there(want.numbers.size());
  double difference = 0;
  for (const auto* const tensors : ranks) {
    const auto got = std::ranges::find(*tensors, want.name, &NamedNumbers::name);
    if (got == tensors->end()) continue;
    ASSERT_EQ(got->numbers.size(), there.size()) << want.name;
    for (size_t i = 0; i < there.size(); ++i) {
      if (std::isnan(got->numbers[i])) continue;
      there[i] = true;
      difference = std::max(difference, std::abs(got->numbers[i] - want.numbers[i]));
    }
  }
  EXPECT_LE(difference / scale, kBound) << want.name;
  EXPECT_EQ(std::ranges::count(there, false), 0) << want.name;
}

void expect_training_of_one_rank(const RunSpec& run) {
  const RankResult& want = serial_result(run);
  const std::vector<RankResult> got = trained(run);
  for (size_t step = 0; step < want.losses.size(); ++step) {
    EXPECT_LE(std::abs(got.front().losses.at(step) / want.losses[step] - 1), kBound);
  }
  std::vector<const std::vector<NamedNumbers>*> gradients, params;
  double largest_gradient = 0;
  for (const RankResult& rank : got) gradients.push_back(&rank.first_gradients), params.push_back(&rank.params);
  for (const NamedNumbers& each : want.first_gradients) {
    largest_gradient = std::max(largest_gradient, largest_of(each.numbers));
  }
  for (const NamedNumbers& each : want.first_gradients) expect_same(gradients, each, largest_gradient);
  for (const NamedNumbers& each : want.params) expect_same(params, each, std::max(1e-3, largest_of(each.numbers)));
}

std::string text_of(const RunSpec& run) {
  const MeshSpec& mesh = run.mesh;
  return cat(model::family_of(run.model).name, " pipe ", mesh.pipe, " data ", mesh.data, " context ", mesh.context, " ",
             mesh.context_parallel, " tensor ", mesh.tensor, mesh.sequence_parallel ? " split " : " whole ",
             run.pipeline.schedule, " zero ", run.sync.zero, " recompute ", run.memory.recompute, " ",
             run.data.attention, " dropout ", run.model.dropout, " ", run.train.reduction, " ", run.run.ranks);
}

int num_failures() { return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count(); }

void train_all() {
  const size_t sizes = kSizes.size();
  const CoveringArray array({sizes, sizes, sizes, kForms.size(), sizes, 2, schedules().size(), 4, kRecompute.size(), 2,
                             2, 2, 2, families().size()},
                            is_legal);
  std::cout << array.rows().size() << " layouts cover " << array.num_pairs() - array.illegal().size() << " of "
            << array.num_pairs() << " pairs; no layout has the others" << std::endl;
  const double begin = now_seconds();
  size_t num_trained = 0, num_different = 0;
  for (const CoveringArray::Row& row : array.rows()) {
    if (now_seconds() - begin > kMostSeconds) break;
    const RunSpec run = run_of(row);
    SCOPED_TRACE(text_of(run));
    const int before = num_failures();
    expect_training_of_one_rank(run);
    if (num_failures() > before) ++num_different;
    ++num_trained;
  }
  std::cout << num_trained << " of them trained in " << fixed(now_seconds() - begin, 0) << " s, " << num_different
            << " unlike one rank" << std::endl;
}

// Forked ranks need a process without other threads, which tests before this one may have left. So the test runs alone.
TEST(CoveringLayouts, TrainTheModelOfOneRank) {
  if (!full_run()) GTEST_SKIP() << "runs under BRAID_FULL";
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 1) return train_all();
  const std::string alone = cat("env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX /proc/", getpid(),
                                "/exe --gtest_filter=CoveringLayouts.TrainTheModelOfOneRank");
  EXPECT_EQ(std::system(alone.c_str()), 0);  // NOLINT(cert-env33-c)
}

// Factors of which the second may not be 2 unless the first is.
TEST(CoveringArrays, HaveEveryLegalPair) {
  const std::vector<size_t> sizes{3, 3, 4, 2};
  const auto legal = [](const CoveringArray::Row& row) { return row[1] < 2 || row[0] == 2; };
  const CoveringArray array(sizes, legal);
  std::set<CoveringArray::Pair> met;
  for (const CoveringArray::Row& row : array.rows()) {
    EXPECT_TRUE(legal(row));
    for (size_t i = 0; i < row.size(); ++i) {
      for (size_t j = i + 1; j < row.size(); ++j) met.insert({i, row[i], j, row[j]});
    }
  }
  EXPECT_EQ(array.num_pairs(), 9u + 12 + 6 + 12 + 6 + 8);
  EXPECT_EQ(array.illegal(), (std::vector<CoveringArray::Pair>{{0, 0, 1, 2}, {0, 1, 1, 2}}));
  EXPECT_EQ(met.size(), array.num_pairs() - 2);
  EXPECT_LE(array.rows().size(), 16u);  // 12 at least
}

}  // namespace
}  // namespace braid::train::covering_layouts_test
