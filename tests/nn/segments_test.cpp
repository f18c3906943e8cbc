// Order of the runs: recomputation in the right order, ahead on demand, never of the head, and nothing kept in
// evaluation.
#include "braid/nn/segments.h"

#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::nn::segments_test {
namespace {

at::Tensor ones() { return at::full({2}, 1, at::kDouble); }

// Doubles, and notes each run: in capitals with a graph.
class Doubling final : public Block {
 public:
  Doubling(char name, std::string& log) : name_(name), log_(log) {}
  at::Tensor forward(const at::Tensor& x, const Microbatch&) override {
    log_ += c10::GradMode::is_enabled() ? static_cast<char>(name_ - 'a' + 'A') : name_;
    if (x.defined()) return x.mul(2);
    return ones().requires_grad_(c10::GradMode::is_enabled());
  }

 private:
  char name_;
  std::string& log_;
};

class SegmentsTest : public testing::Test {
 protected:
  SegmentsTest() {
    for (const char name : {'a', 'b', 'c', 'd'}) blocks_.push_back(std::make_unique<Doubling>(name, log_));
  }
  Segments segments(const char* policy, const StageBlocks& counts) {
    return {blocks_, plan_segments(*spec::recompute_policy(policy), counts), queue_};
  }
  // Returns the runs since the last call.
  std::string ran() { return std::exchange(log_, {}); }
  static at::Tensor backward(const Segments& s, Passage& passage) {
    return s.backward(std::move(passage), ones(), WeightPass::Later);
  }

  std::string log_;
  Segments::Blocks blocks_;
  param::ParamStore store_{{}, Reduction::Fast, at::kDouble, 1};
  std::unique_ptr<param::GradSink> sink_ = param::accumulating_sink(store_);
  param::WeightGradQueue queue_{*sink_};
  Passage passage_, other_;
};

TEST_F(SegmentsTest, NoneRunsOnce) {
  const Segments s = segments("none", {0, 4, 0});
  EXPECT_TRUE(s.forward(ones(), passage_).requires_grad());
  EXPECT_TRUE(backward(s, passage_).equal(ones().mul(16)));
  EXPECT_EQ(ran(), "ABCD");
}

TEST_F(SegmentsTest, FullRunsEachBlockAgainFromTheLast) {
  const Segments s = segments("full", {0, 4, 0});
  const at::Tensor y = s.forward(ones(), passage_);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(y.equal(ones().mul(16)));
  EXPECT_EQ(ran(), "abcd");
  EXPECT_TRUE(backward(s, passage_).equal(ones().mul(16)));
  EXPECT_EQ(ran(), "DCBA");
}

TEST_F(SegmentsTest, TheHeadRunsOnceAndTheFirstStageHasNoInputGradient) {
  const Segments s = segments("every:2", {1, 2, 1});
  EXPECT_TRUE(s.forward({}, passage_).requires_grad());
  EXPECT_EQ(ran(), "abcD");
  EXPECT_FALSE(backward(s, passage_).defined());
  EXPECT_EQ(ran(), "ABC");
}

TEST_F(SegmentsTest, RecomputeTakesTheLastSegmentAheadOnce) {
  const Segments s = segments("every:2", {0, 4, 0});
  s.forward(ones(), passage_);
  s.forward(ones(), other_);
  ran();
  s.recompute(other_);
  s.recompute(other_);
  EXPECT_EQ(ran(), "CD");
  backward(s, passage_);
  EXPECT_EQ(ran(), "CDAB") << "another microbatch's run ahead does not serve this one";
  backward(s, other_);
  EXPECT_EQ(ran(), "AB");
}

TEST_F(SegmentsTest, RecomputeLeavesTheHeadAndStagesThatKeepAllAlone) {
  const Segments head = segments("full", {1, 2, 1}), none = segments("none", {0, 4, 0});
  head.forward({}, passage_);
  none.forward(ones(), other_);
  ran();
  head.recompute(passage_);
  EXPECT_EQ(ran(), "C");
  none.recompute(other_);
  EXPECT_EQ(ran(), "");
}

TEST_F(SegmentsTest, WithoutGradientsNothingIsKept) {
  const Segments s = segments("full", {0, 4, 0});
  const c10::AutoGradMode no_grad(false);
  s.forward(ones(), passage_);
  s.forward(ones(), passage_);
  EXPECT_EQ(ran(), "abcdabcd");
  EXPECT_THROW(backward(s, passage_), InternalError);
}

TEST_F(SegmentsTest, EachMicrobatchPassesOnceAndBackOnce) {
  const Segments s = segments("full", {0, 4, 0});
  EXPECT_THROW(s.recompute(passage_), InternalError);
  s.forward(ones(), passage_);
  EXPECT_THROW(s.forward(ones(), passage_), InternalError);
  backward(s, passage_);
  EXPECT_THROW(backward(s, passage_), InternalError);
}

TEST_F(SegmentsTest, ThePlanCoversTheStage) {
  using Plan = std::vector<Segment>;
  using enum Segment::Kept;
  for (const Plan& plan : {Plan{{0, 3, Graph}}, Plan{{0, 2, Input}, {3, 4, Graph}}, Plan{{0, 5, Graph}},
                           Plan{{0, 2, Input}, {2, 2, Input}, {2, 4, Graph}}, Plan{}}) {
    EXPECT_THROW(Segments(blocks_, plan, queue_), InternalError);
  }
}

}  // namespace
}  // namespace braid::nn::segments_test
