// Parameters on disk that stay in memory between their uses, as far as memory.limit_gb leaves space: the bits of runs
// in memory, what steps read, and the limit.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <thread>

#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/param/block_memory.h"
#include "braid/param/memory_account.h"
#include "braid/plan/nominal_cluster.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::staying_parameters_test {
namespace {

// The numbers of a rank.
struct OfRank {
  int64_t read = 0;                   // in the last step
  int64_t peak = 0, peak_beside = 0;  // of the account
  int64_t parameters = 0;             // bytes of all units in memory
  int64_t each_use = 0, once = 0;     // bytes that a step reads of parameters: for each use, or for the first alone
  std::vector<std::string> choices;
};

struct Outcome {
  std::vector<double> losses;  // of steps and of the evaluations between them
  std::map<std::string, at::Tensor> params;
  std::vector<OfRank> ranks;
};

int64_t passes(const RunSpec& spec) { return 2 * spec.train.batch / spec.train.microbatch / spec.mesh.data; }

OfRank sizes_of(RankModel& model, int64_t passes) {
  OfRank sizes;
  const param::ParamStore& store = model.params();
  for (int unit = 0; store.has_parameters_on_disk() && unit < store.num_gathered(); ++unit) {
    sizes.parameters += param::bytes_on_blocks(store.gathered_data(unit));
    const auto own = static_cast<int64_t>(store.own_part(unit).nbytes());
    sizes.once += own;
    for (int block = 0; block < std::ssize(model.stage_of_block()); ++block) {
      const std::vector<int>& used = store.gathered_by_block(block);
      if (std::ranges::find(used, unit) != used.end()) sizes.each_use += passes * own;
    }
  }
  return sizes;
}

class StayingParameters : public ScratchFolder {
 protected:
  // Makes the steps within spec.memory.limit_gb, and an evaluation after each.
  Outcome trained(const RunSpec& spec) {
    param::install_memory_accounting();
    Outcome all;
    all.ranks.resize(static_cast<size_t>(num_ranks(spec.mesh)));
    const data::Corpus corpus = tiny_corpus();
    std::mutex lock;
    run_ranks(static_cast<int>(all.ranks.size()), [&](Communicator& world) {
      at::get_num_threads();
      at::set_num_threads(1);
      param::account_memory_to(world.rank());
      param::limit_memory(world.rank(), limit_bytes(spec.memory));
      param::reset_memory_peak(world.rank());
      Trainer trainer(spec, corpus, world);
      OfRank mine = sizes_of(trainer.model(), passes(spec));
      param::DiskTensors* const disk = trainer.model().params().disk();
      for (int step = 0; step < spec.train.steps; ++step) {
        const int64_t before = disk ? disk->disk().bytes_read() : 0;
        const double loss = trainer.step().loss;
        mine.read = disk ? disk->disk().bytes_read() - before : 0;
        const double evaluated = trainer.evaluate();
        for (std::string& choice : trainer.take_choices()) {
          if (choice.find("parameters") != choice.npos) mine.choices.push_back(std::move(choice));
        }
        if (world.rank() == 0) all.losses.insert(all.losses.end(), {loss, evaluated});
      }
      mine.peak = param::memory_use(world.rank()).peak_total_bytes;
      mine.peak_beside = param::peak_beside_parameters(world.rank());
      param::limit_memory(world.rank(), 0);
      const std::scoped_lock hold(lock);
      all.ranks[world.rank()] = std::move(mine);
      std::thread([&] { collect(trainer, all.params, Held::Weights); }).join();  // in no rank's account
    });
    return all;
  }

  RunSpec on_disk(RunSpec spec, double limit_gb) {
    spec.memory.optimizer = spec.memory.gradients = spec.memory.parameters = Tier::Disk;
    spec.memory.paths = {"."};  // the files have no names
    spec.memory.chunk_mb = 1.0 / 128;
    spec.memory.limit_gb = limit_gb;
    return spec;
  }

  // Compares a run in memory, one that reads for each use, one with space for a part of the parameters, and one
  // with space for all of them.
  void expect_same_bits_and_fewer_reads(const RunSpec& spec) {
    const Outcome memory = trained(spec), each_use = trained(on_disk(spec, 0));
    int64_t beside = 0, parameters = 0;
    const plan::Prediction prediction = plan::nominal_prediction(on_disk(spec, 0)).value();
    for (const plan::RankMemory& predicted : prediction.memory) {
      beside = std::max(beside, predicted.total() - predicted.parameters);
    }
    for (const OfRank& rank : each_use.ranks) {
      beside = std::max(beside, rank.peak_beside);
      parameters = std::max(parameters, rank.parameters);
    }
    for (const double part : {0.8, 100.0}) {
      SCOPED_TRACE(part);
      const double limit = (static_cast<double>(beside) + part * static_cast<double>(parameters)) / 0.98;
      const Outcome got = trained(on_disk(spec, std::ldexp(limit, -30)));
      for (const Outcome* other : {&got, &each_use}) {
        EXPECT_EQ(other->losses, memory.losses);
        EXPECT_TRUE(same_bits(other->params, memory.params));
      }
      for (size_t rank = 0; rank < got.ranks.size(); ++rank) {
        SCOPED_TRACE(cat("rank ", rank));
        EXPECT_LT(got.ranks[rank].read, each_use.ranks[rank].read);
        EXPECT_LE(got.ranks[rank].peak, std::llround(limit));
        ASSERT_EQ(got.ranks[rank].choices.size(), 1u);
        EXPECT_TRUE(got.ranks[rank].choices[0].starts_with("parameters stay in memory")) << got.ranks[rank].choices[0];
        if (part < 1) continue;
        EXPECT_EQ(each_use.ranks[rank].read - got.ranks[rank].read, got.ranks[rank].each_use - got.ranks[rank].once);
      }
    }
  }
};

RunSpec spec_of(const MeshSpec& mesh, int zero = 0) {
  RunSpec spec = tiny_spec(4, 4);
  spec.mesh = mesh;
  spec.sync.zero = zero;
  spec.optimizer.clip_norm = 0.1;
  spec.train.reduction = Reduction::Reproducible;
  spec.train.eval_sequences = 3;
  spec.train.steps = 3;
  spec.model.layers = 6;
  return spec;
}

TEST_F(StayingParameters, ChangeNoBitsOnOneRank) {
  for (const char* recompute : {"none", "every:2"}) {
    SCOPED_TRACE(recompute);
    RunSpec spec = spec_of({});
    spec.memory.recompute = recompute;
    expect_same_bits_and_fewer_reads(spec);
  }
}

TEST_F(StayingParameters, ChangeNoBitsWhereUpdatesAreMadeDuringBackward) {
  RunSpec spec = spec_of({});
  spec.optimizer.clip_norm = 0;
  expect_same_bits_and_fewer_reads(spec);
}

TEST_F(StayingParameters, ChangeNoBitsOfShards) { expect_same_bits_and_fewer_reads(spec_of({.data = 2}, 3)); }

TEST_F(StayingParameters, ChangeNoBitsOverPipelines) {
  for (const char* schedule : {"1f1b", "zb-v"}) {
    SCOPED_TRACE(schedule);
    RunSpec spec = spec_of({.pipe = 2});
    spec.pipeline.schedule = schedule;
    expect_same_bits_and_fewer_reads(spec);
  }
}

}  // namespace
}  // namespace braid::train::staying_parameters_test
