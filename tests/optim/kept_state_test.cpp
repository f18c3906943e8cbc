// A step taken back leaves the bits that were there, and the next one is what it would have been.
#include "braid/optim/kept_state.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"

namespace braid::kept_state_test {
namespace {

struct Snapshot {
  at::Tensor data, master, first, second;
  int64_t num_steps = 0;
};

Snapshot snapshot(const ParamStore& store, const AdamW& optimizer) {
  return {store.flat_data().detach().clone(), store.flat_master().detach().clone(), optimizer.first_moment().clone(),
          optimizer.second_moment().clone(), optimizer.num_steps()};
}

void expect_same(const Snapshot& a, const Snapshot& b) {
  EXPECT_TRUE(a.data.equal(b.data));
  EXPECT_TRUE(a.master.equal(b.master));
  EXPECT_TRUE(a.first.equal(b.first));
  EXPECT_TRUE(a.second.equal(b.second));
  EXPECT_EQ(a.num_steps, b.num_steps);
}

void fill_grads(ParamStore& store, uint64_t key) {
  for (Parameter& param : store.params()) {
    for (int64_t i = 0; i < param.num_elements(); ++i) {
      param.main_grad.view({-1}).select(0, i).fill_(2 * uniform(key, param.offset + i) - 1);
    }
  }
}

class KeptStateOf : public testing::TestWithParam<at::ScalarType> {
 protected:
  ParamStore store_{{{"a", {{"w", replicated({40, 7}), {Init::Kind::Normal, 0.5}}}}}, Reduction::Fast, GetParam(), 1};
  AdamW optimizer_{{}, store_};
};

TEST_P(KeptStateOf, AStepTakenBackLeavesTheBitsThatWereThere) {
  KeptState kept(store_, optimizer_);
  fill_grads(store_, 1);
  optimizer_.step({0.01, 1});
  const Snapshot before = snapshot(store_, optimizer_);
  kept.keep();
  optimizer_.step({0.01, 1});
  EXPECT_FALSE(before.master.equal(store_.flat_master()));
  kept.restore();
  expect_same(snapshot(store_, optimizer_), before);
  optimizer_.step({0.01, 0.5});
  const Snapshot redone = snapshot(store_, optimizer_);

  ParamStore other({{"a", {{"w", replicated({40, 7}), {Init::Kind::Normal, 0.5}}}}}, Reduction::Fast, GetParam(), 1);
  AdamW straight({}, other);
  fill_grads(other, 1);
  straight.step({0.01, 1});
  straight.step({0.01, 0.5});
  expect_same(redone, snapshot(other, straight));
}

INSTANTIATE_TEST_SUITE_P(EveryType, KeptStateOf, testing::Values(at::kFloat, at::kDouble, at::kBFloat16, at::kHalf));

TEST(KeptState, NothingKeptIsNothingToRestore) {
  ParamStore store({{"a", {{"w", replicated({3})}}}}, Reduction::Fast, at::kFloat, 1);
  AdamW optimizer({}, store);
  KeptState kept(store, optimizer);
  EXPECT_THROW(kept.restore(), InternalError);
}

}  // namespace
}  // namespace braid::kept_state_test
