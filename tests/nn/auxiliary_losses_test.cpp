// Losses and counts that blocks hand in: the gradients are those of the whole objective by plain autograd, and each is
// reported once, however often its block runs.
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <map>

#include "braid/base/text.h"
#include "braid/nn/linear.h"
#include "braid/nn/segments.h"
#include "tests/nn/formula_values.h"

namespace braid::nn::auxiliary_losses_test {
namespace {

constexpr int64_t kFeatures = 3;
constexpr int kNumBlocks = 4, kNumMicros = 2;
constexpr double kSeed = 0.5;  // of the loss

std::string weight_name(int block) { return cat("blocks.", block, ".weight"); }
double coefficient(int block) { return 0.3 + block; }
at::Tensor formula_of(const std::string& what, int micro) { return formula_tensor(cat(what, micro), {5, kFeatures}); }

// x + tanh(g) with g = x W^T; hands in the mean of g's squares, and how many are positive.
class Squared final : public Block {
 public:
  Squared(int index, const param::Parameter& weight, param::WeightGradQueue& queue)
      : index_(index), weight_(weight), queue_(queue) {}

  at::Tensor forward(const at::Tensor& x, const Microbatch& m) override {
    const at::Tensor g = linear(x, {{&weight_, 0}, nullptr, &queue_, m.micro});
    if (m.auxiliaries) {
      m.auxiliaries->losses.push_back({weight_.name, g.square().mean(), coefficient(index_)});
      m.auxiliaries->counts.push_back({weight_.name, g.gt(0).sum().view({1})});
    }
    return x.add(g.tanh());
  }

 private:
  int index_;
  const param::Parameter& weight_;
  param::WeightGradQueue& queue_;
};

std::vector<layout::BlockSpec> block_specs() {
  std::vector<layout::BlockSpec> specs;
  for (int block = 0; block < kNumBlocks; ++block) {
    const layout::ParamSpec weight{
        weight_name(block), mesh::replicated({kFeatures, kFeatures}), {model::Init::Kind::Normal, 0.7}};
    specs.push_back({cat("blocks.", block), {weight}});
  }
  return specs;
}

struct Way {
  std::string policy = "none";
  WeightPass weights = WeightPass::Later;
  enum class Recomputes { InBackward, Ahead } recomputes = Recomputes::InBackward;
};

// By what it is: outputs and dX by microbatch, what was handed in by microbatch and block, gradients by weight.
using Results = std::map<std::string, at::Tensor>;

class Stage {
 public:
  Stage() {
    for (int block = 0; block < kNumBlocks; ++block) {
      blocks_.push_back(std::make_unique<Squared>(block, store_[weight_name(block)], queue_));
    }
  }

  // Two forwards and then two backwards, as a pipeline has them.
  Results step(const Way& way) {
    const Segments segments(blocks_, plan_segments(*spec::recompute_policy(way.policy), {0, kNumBlocks, 0}), queue_);
    sink_->begin_step(kNumMicros);
    Results results;
    std::vector<Passage> passages;
    for (int micro = 0; micro < kNumMicros; ++micro) {
      Microbatch m;
      m.micro = micro;
      m.loss_gradient = kSeed;
      Passage& passage = passages.emplace_back(m);
      results[cat("y", micro)] = segments.forward(formula_of("x", micro), passage).detach();
      note(micro, passage.take_auxiliaries(), results);
    }
    for (int micro = 0; micro < kNumMicros; ++micro) {
      Passage& passage = passages[static_cast<size_t>(micro)];
      if (way.recomputes == Way::Recomputes::Ahead) segments.recompute(passage);
      EXPECT_TRUE(passage.take_auxiliaries().losses.empty()) << "a second run reports nothing";
      EXPECT_TRUE(passage.take_auxiliaries().counts.empty()) << "a second run counts nothing";
      results[cat("dx", micro)] = segments.backward(std::move(passage), formula_of("dy", micro), way.weights);
    }
    EXPECT_EQ(queue_.pending(), way.weights == WeightPass::Later ? kNumMicros * kNumBlocks : 0);
    queue_.run_all();
    for (const param::Parameter& p : store_.params()) results["d" + p.name] = p.use_grads[0].slice.clone();
    return results;
  }

  // The same numbers from one graph of everything.
  Results plain() {
    const c10::AutoGradMode grad(true);
    Results results;
    std::vector<at::Tensor> weights, inputs;
    for (const param::Parameter& p : store_.params()) weights.push_back(p.data.detach().clone().requires_grad_(true));
    at::Tensor objective;
    for (int micro = 0; micro < kNumMicros; ++micro) {
      inputs.push_back(formula_of("x", micro).requires_grad_(true));
      const at::Tensor of_micro = plain_objective(micro, inputs.back(), weights, results);
      objective = objective.defined() ? objective.add(of_micro) : of_micro;
    }
    objective.backward();
    for (int micro = 0; micro < kNumMicros; ++micro) results[cat("dx", micro)] = inputs[micro].grad();
    for (int block = 0; block < kNumBlocks; ++block) results["d" + weight_name(block)] = weights[block].grad();
    return results;
  }

  const Segments::Blocks& blocks() const { return blocks_; }
  param::WeightGradQueue& queue() { return queue_; }

 private:
  // With dy . y in the place of the head's loss.
  static at::Tensor plain_objective(int micro, at::Tensor x, const std::vector<at::Tensor>& weights, Results& results) {
    at::Tensor sum;
    for (int block = 0; block < kNumBlocks; ++block) {
      const at::Tensor g = x.matmul(weights[block].t()), squares = g.square().mean();
      results[cat("loss", micro, weight_name(block))] = squares.detach();
      results[cat("count", micro, weight_name(block))] = g.gt(0).sum().view({1});
      const at::Tensor term = squares.mul(kSeed * coefficient(block));
      sum = sum.defined() ? sum.add(term) : term;
      x = x.add(g.tanh());
    }
    results[cat("y", micro)] = x.detach();
    return sum.add(x.mul(formula_of("dy", micro)).sum());
  }
  static void note(int micro, const Auxiliaries& handed_in, Results& results) {
    for (const AuxiliaryLoss& loss : handed_in.losses) {
      EXPECT_FALSE(loss.value.requires_grad()) << "what is reported keeps no graph";
      EXPECT_TRUE(results.emplace(cat("loss", micro, loss.name), loss.value).second) << "reported once";
    }
    for (const AuxiliaryCount& count : handed_in.counts) {
      EXPECT_TRUE(results.emplace(cat("count", micro, count.name), count.numbers).second) << "counted once";
    }
  }

  param::ParamStore store_{block_specs(), Reduction::Fast, at::kDouble, 1};
  std::unique_ptr<param::GradSink> sink_ = param::accumulating_sink(store_);
  param::WeightGradQueue queue_{*sink_};
  Segments::Blocks blocks_;
};

TEST(AuxiliaryLosses, AreInEveryGradientAsInOneGraphOfTheWholeObjective) {
  const Results want = Stage().plain();
  for (const char* policy : {"none", "selective", "full", "every:2", "every:3"}) {
    for (const WeightPass weights : {WeightPass::Later, WeightPass::AtOnce}) {
      for (const auto recomputes : {Way::Recomputes::InBackward, Way::Recomputes::Ahead}) {
        const Results got = Stage().step({policy, weights, recomputes});
        EXPECT_EQ(got.size(), want.size());
        for (const auto& [name, tensor] : want) {
          ASSERT_TRUE(got.contains(name)) << name;
          EXPECT_LT(got.at(name).sub(tensor).abs().max().item<double>(), 1e-12) << name << ", " << policy;
        }
      }
    }
  }
}

TEST(AuxiliaryLosses, AreNotAskedForInEvaluation) {
  Stage stage;
  const Segments segments(stage.blocks(), plan_segments(*spec::recompute_policy("full"), {0, kNumBlocks, 0}),
                          stage.queue());
  Passage passage;
  const c10::AutoGradMode no_grad(false);
  segments.forward(formula_of("x", 0), passage);
  const Auxiliaries handed_in = passage.take_auxiliaries();
  EXPECT_TRUE(handed_in.losses.empty() && handed_in.counts.empty());
}

}  // namespace
}  // namespace braid::nn::auxiliary_losses_test
