// Between the last weight pass of a step and the first forward of the next no rank waits for another; what all must
// know is heard a step later.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>

#include "braid/comm/local/run_ranks.h"
#include "tests/train/layout_run.h"

namespace braid::post_validation_barrier_test {
namespace {

RunSpec spec_for(int pipe, double clip_norm) {
  RunSpec spec = tiny_spec(6, 8);
  spec.mesh.pipe = pipe;
  spec.pipeline.schedule = "1f1b";
  spec.pipeline.validation = "after";
  spec.optimizer.clip_norm = clip_norm;
  return spec;
}

// Whether ranks guess, or wait because their own part of the norm is more than clip_norm.
TEST(PostValidationWish, OneRanksWishIsHeardOneStepLater) {
  for (const double clip_norm : {0.0, 1e-3}) {
    on_every_rank(spec_for(2, clip_norm), [](Trainer& trainer) {
      int step = 0;
      const bool wishes = trainer.groups().world.rank() == 1;
      trainer.wish = [&] { return wishes && step == 2 ? Wish::Stop : Wish::GoOn; };
      for (step = 1; step <= 3; ++step) {
        trainer.advance();
        EXPECT_EQ(trainer.agreed_wish() == Wish::Stop, step == 3);
      }
      trainer.settle();
      EXPECT_EQ(trainer.agreed_wish(), Wish::GoOn);
    });
  }
}

// Tokens that tell whoever counts their reads on the thread at hand.
thread_local std::function<void()> on_read_here;

class CountedTokens final : public TokenSource {
 public:
  explicit CountedTokens(Tokens tokens) : tokens_(std::move(tokens)) {}
  int64_t num_tokens() const override { return tokens_->num_tokens(); }
  int64_t num_documents() const override { return tokens_->num_documents(); }
  void read(int64_t begin, std::span<int64_t> out) const override {
    tokens_->read(begin, out);
    if (on_read_here) on_read_here();
  }
  void read_documents(int64_t begin, std::span<int64_t> out) const override { tokens_->read_documents(begin, out); }

 private:
  Tokens tokens_;
};

// The last rank is held up where its gradients are final. The first one goes on all the same: it begins the next step,
// whose warm-up on four ranks is four forwards, each of which reads one sequence. Were there any collective in its way,
// the last rank would never be let go; then the first one's wait ends at the deadline.
TEST(PostValidationBarrier, WarmUpForwardsDoNotWaitForARankThatIsHeldUp) {
  Corpus corpus = tiny_corpus();
  corpus.train[0].tokens = std::make_shared<CountedTokens>(corpus.train[0].tokens);
  const RunSpec spec = spec_for(4, 0);
  std::promise<bool> warmed_up;
  std::shared_future<bool> let_go = warmed_up.get_future().share();
  run_ranks(
      4,
      [&](Communicator& world) {
        at::get_num_threads();
        at::set_num_threads(1);
        Trainer trainer(spec, corpus, world);
        if (world.rank() == 3) trainer.wish = [&] { return let_go.get() ? Wish::GoOn : Wish::Stop; };
        int num_reads = 0;
        try {
          trainer.advance();
          if (world.rank() == 0) {
            on_read_here = [&] {
              if (++num_reads == 4) warmed_up.set_value(true);
            };
          }
          trainer.advance();
        } catch (...) {
          if (world.rank() == 0 && num_reads < 4) warmed_up.set_value(false);
          throw;
        }
        on_read_here = nullptr;
        trainer.settle();
      },
      LocalOptions{.deadline_seconds = 60});
  EXPECT_TRUE(let_go.get());
}

}  // namespace
}  // namespace braid::post_validation_barrier_test
