// Checkpoints of optimizers whose states are on disk.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "braid/module/layer_facts.h"
#include "braid/module/optimizer_on_disk.h"
#include "braid/module/torch_state.h"
#include "tests/module/saved_models.h"

namespace braid::modules::saved_states_on_disk_test {
namespace {

using namespace saved_models;

class SavedStates : public ScratchFolder {
 protected:
  // Makes a step, saves it as "saved", and takes the optimizer's states away.
  void save_step(const Trained& rank) {
    rank.step(batch(0));
    rank.model.save(path("saved"), rank.optimizer);
    rank.optimizer.state().clear();
  }
};

// All: optimizer states, parameters and gradients.
enum class OnDisk { Nothing, States, All };

class SavedOnDisk : public ScratchFolder, public testing::WithParamInterface<Ranks> {
 protected:
  struct Steps {
    int begin, end;
  };
  // Makes the steps, loads `from` after those of `before`, and saves to `to` at the end.
  void train(OnDisk kept, const std::string& from, Steps steps, const std::string& to, Steps before = {0, 0}) {
    std::vector<Batch> batches;
    for (int step = 0; step < 4; ++step) batches.push_back(batch(step));
    const auto body = [&](const Trained& rank) {
      std::optional<OptimizerOnDisk> disk;
      if (kept != OnDisk::Nothing) rank.disk = &disk.emplace(rank.optimizer, OptimizerOnDisk::Options{{folder_}, 4096});
      for (int step = before.begin; step < before.end; ++step) rank.step(batches[step]);
      if (!from.empty()) rank.model.load(path(from), rank.optimizer);
      for (int step = steps.begin; step < steps.end; ++step) rank.step(batches[step]);
      rank.model.save(path(to), rank.optimizer);
    };
    Ranks ranks = GetParam();
    if (kept == OnDisk::All) {
      ranks.memory = {.parameters = Kept::OnDisk, .gradients = Kept::OnDisk, .folders = {folder_}};
    }
    on(ranks, nets(ranks, 3), body);
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, SavedOnDisk, testing::ValuesIn(kinds_of_ranks()));

TEST_P(SavedOnDisk, CheckpointsAreThoseOfMemory) {
  for (const OnDisk kept : {OnDisk::States, OnDisk::All}) {
    // Sums of several microbatches have another order where gradients are sharded.
    const bool other_sums = kept == OnDisk::All && GetParam().schedule && GetParam().zero > 0;
    train(other_sums ? kept : OnDisk::Nothing, "", {0, 2}, "whole");
    train(kept, "", {0, 1}, "first");
    train(other_sums ? kept : OnDisk::Nothing, "first", {1, 2}, "loaded in memory");
    train(kept, "first", {1, 2}, "loaded on disk");
    train(kept, "first", {1, 2}, "loaded later", {2, 4});
    for (const char* other : {"loaded in memory", "loaded on disk", "loaded later"}) {
      saved_models::expect_same(path(other), path("whole"));
    }
  }
}

// A model whose states do not fit in memory could not resume otherwise.
TEST_F(SavedStates, LoadingBeforeTheFirstStepFillsTheDisk) {
  const auto body = [&](const Trained& rank) {
    save_step(rank);
    const OptimizerOnDisk disk(rank.optimizer, {{folder_}});
    std::map<void*, const void*> places;
    for (const at::Tensor& each : rank.optimizer.param_groups()[0].params()) {
      const auto numbers = find_state(rank.optimizer, each)->numbers.at("exp_avg");
      places[each.unsafeGetTensorImpl()] = numbers.const_data_ptr();
    }
    rank.model.load(path("saved"), rank.optimizer);
    for (const at::Tensor& each : rank.optimizer.param_groups()[0].params()) {
      const auto found = find_state(rank.optimizer, each);
      if (!found) continue;  // frozen: not in the checkpoint
      EXPECT_EQ(found->numbers.at("exp_avg").const_data_ptr(), places.at(each.unsafeGetTensorImpl()));
      EXPECT_EQ(found->steps, 1);
    }
  };
  on({nullptr, 1, 1, 1}, nets({nullptr, 1, 1, 1}, 3), body);
}

// A load after a step must not write to the disk past its checksums, whichever parameters the step was of.
TEST_F(SavedStates, LoadingAfterAStepOfOtherParameters) {
  const auto body = [&](const Trained& rank) {
    save_step(rank);
    const at::Tensor other = torch::ones({5}).requires_grad_(true);
    rank.optimizer.param_groups()[0].params().push_back(other);
    OptimizerOnDisk disk(rank.optimizer, {{folder_}});
    for (const at::Tensor& each : rank.optimizer.param_groups()[0].params()) each.mutable_grad().reset();
    other.mutable_grad() = torch::ones({5});
    disk.step();
    rank.model.load(path("saved"), rank.optimizer);
    rank.disk = &disk;
    rank.step(batch(0));
  };
  on({nullptr, 1, 1, 0}, nets({nullptr, 1, 1, 0}, 3), body);
}

// A parameter that is frozen after the optimizer was made has no state, as in memory: its count would not be that of
// what is sharded with it.
TEST_F(SavedStates, FrozenParametersHaveNone) {
  const Lists lists = nets({nullptr, 1, 1, 0}, 3);
  const Batch rows = batch(0);
  const auto body = [&](const Trained& rank) {
    OptimizerOnDisk disk(rank.optimizer, {{folder_}});
    rank.disk = &disk;
    rank.model.save(path("before"), rank.optimizer);
    braid::modules::parameters(lists[0][0])[1].requires_grad_(false);
    rank.step(rows);
    rank.model.save(path("after"), rank.optimizer);
  };
  on({nullptr, 1, 1, 0}, lists, body);
  for (const auto& [name, tensor] : values(path("before"))) EXPECT_EQ(name.find('/'), name.npos) << name;
  EXPECT_TRUE(values(path("after")).contains("step/fc.weight"));
  EXPECT_FALSE(values(path("after")).contains("step/fc.bias"));
}

}  // namespace
}  // namespace braid::modules::saved_states_on_disk_test
