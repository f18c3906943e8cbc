// Both sinks: who overwrites, who adds, when a parameter is ready, and which bits the tree gives.
#include "braid/param/grad_sink.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>
#include <thread>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/param/memory_account.h"
#include "tests/param/made_gradients.h"
#include "tests/support/sampled.h"

namespace braid::param::grad_sink_test {
namespace {

void contribute(GradSink& sink, const Parameter& param, int use, int micro) {
  write(sink.open(param, use, micro), gradient(param, use, micro));
  sink.close(param, use, micro);
}

TEST(AccumulatingSink, FirstContributionOfAStepOverwrites) {
  ParamStore store(tied_model(), Reduction::Fast, at::kFloat, 1);
  const auto sink = accumulating_sink(store);
  const Parameter& wte = store["wte"];
  for (int step = 0; step < 2; ++step) {
    store.flat_grads().fill_(99);  // of the step before
    sink->begin_step(2);
    std::vector<double> betas;
    at::Tensor expected;
    for (const auto& [use, micro] : std::vector<std::pair<int, int>>{{1, 1}, {0, 1}, {1, 0}, {0, 0}}) {
      const GradSlot slot = sink->open(wte, use, micro);
      betas.push_back(slot.beta);
      write(slot, gradient(wte, use, micro));
      sink->close(wte, use, micro);
      const at::Tensor add = gradient(wte, use, micro);
      expected = expected.defined() ? at::add(expected, add) : add;
    }
    EXPECT_EQ(betas, (std::vector<double>{0, 1, 1, 1}));
    EXPECT_TRUE(at::equal(wte.main_grad, expected));
  }
}

TEST(AccumulatingSink, KeepsUsesApartInReproducibleMode) {
  ParamStore store(tied_model(), Reduction::Reproducible, at::kFloat, 1);
  const auto sink = accumulating_sink(store);
  sink->begin_step(1);
  const Parameter& wte = store["wte"];
  for (const int use : {1, 0}) contribute(*sink, wte, use, 0);
  for (const int use : {0, 1}) EXPECT_TRUE(at::equal(wte.use_grads[use].slice, gradient(wte, use, 0))) << use;
}

class BothSinks : public testing::TestWithParam<Reduction> {
 protected:
  ParamStore store_{tied_model(), GetParam(), at::kFloat, 1};
  std::unique_ptr<GradSink> sink_ = GetParam() == Reduction::Fast ? accumulating_sink(store_) : tree_sink(store_);
  const Parameter& wte_ = store_["wte"];
  const Parameter& wpe_ = store_["wpe"];
};
INSTANTIATE_TEST_SUITE_P(Sinks, BothSinks, testing::Values(Reduction::Fast, Reduction::Reproducible),
                         [](const auto& of) { return of.param == Reduction::Fast ? "accumulating" : "tree"; });

TEST_P(BothSinks, ReadyComesOnceWhenAllUsesAndMicrobatchesAreClosed) {
  std::vector<std::string> events;
  sink_->on_ready = [&](const Parameter& param) { events.push_back(cat("ready ", param.name)); };
  for (int step = 0; step < 2; ++step) {
    events.clear();
    sink_->begin_step(2);
    const auto close = [&](const Parameter& param, int use, int micro) {
      contribute(*sink_, param, use, micro);
      events.push_back(cat(param.name, use, micro));
    };
    close(wte_, 1, 0);
    close(wpe_, 0, 0);
    close(wte_, 0, 0);
    close(wte_, 1, 1);
    close(wpe_, 0, 1);
    close(wte_, 0, 1);
    EXPECT_EQ(joined(events), "wte10, wpe00, wte00, wte11, ready wpe, wpe01, ready wte, wte01");
  }
}

TEST_P(BothSinks, GradientsAreFinalWhenReady) {
  bool final = false;
  sink_->on_ready = [&](const Parameter& param) { final = at::equal(param.main_grad, tree(param, 0, 0, 2)); };
  sink_->begin_step(2);
  contribute(*sink_, wpe_, 0, 0);
  contribute(*sink_, wpe_, 0, 1);
  EXPECT_TRUE(final);
}

TEST_P(BothSinks, BrokenPromisesFail) {
  EXPECT_THROW(sink_->open(wpe_, 0, 0), InternalError) << "before the first step";
  EXPECT_THROW(sink_->begin_step(0), InternalError);
  sink_->begin_step(2);
  EXPECT_THROW(sink_->open(wpe_, 0, 2), InternalError) << "unknown microbatch";
  EXPECT_THROW(sink_->open(wpe_, 0, -1), InternalError) << "unknown microbatch";
  EXPECT_THROW(sink_->open(wpe_, 1, 0), InternalError) << "unknown use";
  EXPECT_THROW(sink_->close(wpe_, 0, 0), InternalError) << "not open";
  sink_->open(wpe_, 0, 0);
  EXPECT_THROW(sink_->open(wpe_, 0, 0), InternalError) << "open already";
  EXPECT_THROW(sink_->open(wpe_, 0, 1), InternalError) << "two writers of one slice";
  sink_->close(wpe_, 0, 0);
  EXPECT_THROW(sink_->close(wpe_, 0, 0), InternalError) << "closed already";
  EXPECT_THROW(sink_->open(wpe_, 0, 0), InternalError) << "repeated";
}

TEST(TreeSink, SumsInTheBalancedTreeWhateverTheOrder) {
  ParamStore store(tied_model(), Reduction::Reproducible, at::kFloat, 1);
  const auto sink = tree_sink(store);
  const Parameter& wte = store["wte"];
  const int num_orders = full_run() ? 2000 : 60;
  for (const int m : {1, 2, 4, 8, 16}) {
    std::vector<int> order(2 * m);  // use and microbatch
    std::iota(order.begin(), order.end(), 0);
    for (int o = 0; o < num_orders; ++o) {
      store.flat_grads().fill_(99);
      sink->begin_step(m);
      for (const int item : order) contribute(*sink, wte, item / m, item % m);
      for (const int use : {0, 1}) {
        ASSERT_TRUE(at::equal(wte.use_grads[use].slice, tree(wte, use, 0, m))) << m << " microbatches, order " << o;
      }
      for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random_bits(o, i) % (i + 1)]);
    }
  }
}

// Returns the sum that a data rank of `n` forms of its contiguous block of 8 microbatches.
at::Tensor block_sum(int rank, int n) {
  ParamStore store(tied_model(), Reduction::Reproducible, at::kFloat, 1);
  const auto sink = tree_sink(store);
  const Parameter& wpe = store["wpe"];
  const int m = 8 / n;
  sink->begin_step(m);
  for (int micro = 0; micro < m; ++micro) {
    write(sink->open(wpe, 0, micro), gradient(wpe, 0, rank * m + micro));
    sink->close(wpe, 0, micro);
  }
  return wpe.main_grad.clone();
}

TEST(TreeSink, ContinuesAcrossRanksToTheSameBits) {
  const at::Tensor one = block_sum(0, 1);
  const auto two = at::add(block_sum(0, 2), block_sum(1, 2));
  EXPECT_TRUE(at::equal(one, two));
  const auto four = at::add(at::add(block_sum(0, 4), block_sum(1, 4)), at::add(block_sum(2, 4), block_sum(3, 4)));
  EXPECT_TRUE(at::equal(one, four));
  // The values are such that another order gives other bits.
  at::Tensor in_order = block_sum(0, 8);
  for (int r = 1; r < 8; ++r) in_order.add_(block_sum(r, 8));
  EXPECT_FALSE(at::equal(one, in_order));
}

TEST(TreeSink, NeedsAPowerOfTwoAndSlicesOfTheirOwn) {
  ParamStore fast(tied_model(), Reduction::Fast, at::kFloat, 1);
  EXPECT_THROW(tree_sink(fast), InternalError);
  ParamStore store(tied_model(), Reduction::Reproducible, at::kFloat, 1);
  EXPECT_THROW(tree_sink(store)->begin_step(6), InternalError);
}

// The slice is one of the log2(m) + 1 buffers of the in-order case, so log2(m) are allocated, in the first step only.
TEST(TreeSink, InOrderItKeepsLogarithmicallyManyBuffers) {
  install_memory_accounting();
  constexpr int kRank = 901;
  std::thread([&] {
    account_memory_to(kRank);
    const int64_t before = memory_use(kRank).bytes[static_cast<int>(MemoryCategory::Gradients)];
    ParamStore store({{"b", {{"w", mesh::replicated({2048})}}}}, Reduction::Reproducible, at::kFloat, 1);
    const auto sink = tree_sink(store);
    const Parameter& w = store["w"];
    for (const int m : {1, 2, 4, 8, 16}) {
      for (int step = 0; step < 3; ++step) {
        sink->begin_step(m);
        std::set<void*> targets;
        for (int micro = 0; micro < m; ++micro) {
          const GradSlot slot = sink->open(w, 0, micro);
          targets.insert(slot.target.data_ptr());
          slot.target.fill_(1);
          sink->close(w, 0, micro);
        }
        const int buffers = std::bit_width(static_cast<unsigned>(m));  // log2(m) + 1
        EXPECT_LE(targets.size(), static_cast<size_t>(buffers));
        const int64_t bytes = memory_use(kRank).bytes[static_cast<int>(MemoryCategory::Gradients)] - before;
        EXPECT_EQ(bytes, buffers * 2048 * 4) << m << " microbatches, step " << step;
        EXPECT_EQ(w.main_grad.const_data_ptr<float>()[7], m);
      }
    }
  }).join();
}

}  // namespace
}  // namespace braid::param::grad_sink_test
