// The order of products and of the collectives of tensor ranks in backward, with and without overlap.
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <iterator>

#include "braid/base/text.h"
#include "tests/nn/two_stages.h"
#include "tests/support/wrapped_communicator.h"

namespace braid::nn::reduction_overlap_test {
namespace {

using param::ReductionOverlap;

using Events = std::vector<std::string>;
thread_local Events* recorded = nullptr;

// Records when a call starts, and when the rank waits for it.
class RecordedCalls final : public WrappedCommunicator {
 public:
  using WrappedCommunicator::WrappedCommunicator;

  Work all_reduce(const at::Tensor& tensor, ReduceOp op) override {
    return recorded_work("all-reduce", inner().all_reduce(tensor, op));
  }
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) override {
    return recorded_work("reduce-scatter", inner().reduce_scatter(out, in, op));
  }
  Work all_gather(const at::Tensor& out, const at::Tensor& in) override {
    return recorded_work("all-gather", inner().all_gather(out, in));
  }

 private:
  class State final : public Work::State {
   public:
    State(std::string what, Work work) : what_(std::move(what)), work_(std::move(work)) {}
    void order_before(Queue& queue) override {
      recorded->push_back(what_ + " ends");
      work_.order_before(queue);
    }
    void wait_host() override { work_.wait_host(); }
    bool done() const override { return work_.done(); }

   private:
    const std::string what_;
    Work work_;
  };

  static Work recorded_work(const std::string& what, Work work) {
    recorded->push_back(what + " starts");
    return Work(std::make_shared<State>(what, std::move(work)));
  }
};

// Records LibTorch's products: dX, and dW, which is added to its slot.
std::unique_ptr<at::ObserverContext> record_product(const at::RecordFunction& function) {
  const std::string name = function.name();
  if (name == "aten::mm") recorded->push_back("dX");
  if (name == "aten::addmm_") recorded->push_back("dW");
  return nullptr;
}

// Returns what rank 0 does in the backward of one block.
Events backward_of_block(ModelFamily family, layout::Sequence tokens, ReductionOverlap overlap, WeightPass weights) {
  Events events_of_first;
  run_ranks(2, [&](Communicator& group) {
    at::get_num_threads();
    at::set_num_threads(1);
    Events events;
    recorded = &events;
    RecordedCalls tensor(group);
    const StagesRun run{five_blocks(family)};
    layout::ModelParams params = layout::model_params(run.model, group.rank(), group.size());
    const mesh::Axis axis = mesh::Axis::Tensor;
    if (tokens == layout::Sequence::Split) {
      layout::split_tokens(model::graph_of(run.model), {group.rank(), group.size(), axis}, params);
    }
    param::ParamStore store(params, Reduction::Fast, at::kDouble, 1);
    const auto sink = param::accumulating_sink(store);
    param::WeightGradQueue queue(*sink);
    queue.set_overlap(overlap);
    Segments::Blocks blocks;
    blocks.push_back(model_block(run.model, {2}, store, RankContext{tensor, queue, Keep::Everything, tokens}));
    const Segments segments(blocks, {{0, 1}}, queue);
    sink->begin_step(1);
    const int64_t t = run.model.context / (tokens == layout::Sequence::Split ? group.size() : 1);
    const at::Tensor x = at::zeros({kSequences, t, run.model.width}, at::kDouble);
    Passage passage(stages_microbatch(run, 0));
    segments.forward(x, passage);
    events.clear();
    const auto callback = at::addThreadLocalCallback(at::RecordFunctionCallback(record_product));
    segments.backward(std::move(passage), x, weights);
    at::removeCallback(callback);
    recorded = nullptr;
    if (group.rank() == 0) events_of_first = events;
    queue.run_all();
  });
  return events_of_first;
}

TEST(ReductionOverlap, WeightGradientsRunWhileTheInputGradientTravels) {
  const Events half{"dX", "dW", "dX", "all-reduce starts", "dW", "all-reduce ends"};
  Events want = half;
  want.insert(want.end(), half.begin(), half.end());
  EXPECT_EQ(backward_of_block(ModelFamily::Gpt2, layout::Sequence::Whole, ReductionOverlap::On, WeightPass::AtOnce),
            want);
}

TEST(ReductionOverlap, WithoutItTheyRunBefore) {
  const Events half{"dX", "dW", "dX", "dW", "all-reduce starts", "all-reduce ends"};
  Events want = half;
  want.insert(want.end(), half.begin(), half.end());
  EXPECT_EQ(backward_of_block(ModelFamily::Gpt2, layout::Sequence::Whole, ReductionOverlap::Off, WeightPass::AtOnce),
            want);
}

// Weight passes of their own are the schedule's.
TEST(ReductionOverlap, WeightGradientsOfALaterPassStayThere) {
  const Events half{"dX", "dX", "all-reduce starts", "all-reduce ends"};
  Events want = half;
  want.insert(want.end(), half.begin(), half.end());
  EXPECT_EQ(backward_of_block(ModelFamily::Gpt2, layout::Sequence::Whole, ReductionOverlap::On, WeightPass::Later),
            want);
}

TEST(ReductionOverlap, TheInputIsGatheredDuringTheProductOfItsGradient) {
  const Events half{"all-gather starts",
                    "all-gather ends",
                    "dX",
                    "dW",
                    "all-gather starts",
                    "dX",
                    "all-gather ends",
                    "reduce-scatter starts",
                    "dW",
                    "reduce-scatter ends"};
  Events want = half;
  want.insert(want.end(), half.begin(), half.end());
  EXPECT_EQ(backward_of_block(ModelFamily::Gpt2, layout::Sequence::Split, ReductionOverlap::On, WeightPass::AtOnce),
            want);
}

// All products of the gated branch, or of queries, keys and values, wait for the one sum of their input's gradient.
TEST(ReductionOverlap, ProductsOfOneInputShareItsSum) {
  const Events events =
      backward_of_block(ModelFamily::Llama, layout::Sequence::Whole, ReductionOverlap::On, WeightPass::AtOnce);
  const auto starts = std::ranges::find(events, "all-reduce starts"),
             ends = std::ranges::find(events, "all-reduce ends");
  EXPECT_EQ(std::count(events.begin(), starts, "dW"), 1) << joined(events);
  EXPECT_GE(std::count(starts, ends, "dW"), 1) << joined(events);
  EXPECT_EQ(std::count(starts, ends, "dX"), 0) << joined(events);
}

}  // namespace
}  // namespace braid::nn::reduction_overlap_test
