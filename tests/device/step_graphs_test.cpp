// When work is recorded, replayed, recorded anew and given up.
#include "braid/device/step_graphs.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace braid::device::step_graphs_test {
namespace {

// Writes down what happens to each graph: "b0" began, "e" ended, "a" abandoned, "r" replayed, "f" freed.
struct Diary {
  std::string text;
  int num_made = 0;
  bool fails_at_end = false;

  MakeGraph maker() {
    return [this](DeviceGraph* share) { return std::make_unique<Graph>(*this, share != nullptr); };
  }
  std::string taken() { return std::exchange(text, ""); }

  struct Graph final : DeviceGraph {
    Graph(Diary& d, bool shares) : diary(d), name(std::to_string(d.num_made++) + (shares ? "s" : "")) {}
    ~Graph() override { diary.text += "f" + name + " "; }
    void begin_capture() override { diary.text += "b" + name + " "; }
    void end_capture() override {
      diary.text += "e" + name + " ";
      if (diary.fails_at_end) throw std::runtime_error("cannot end");
    }
    void abandon_capture() override { diary.text += "a" + name + " "; }
    void replay() override { diary.text += "r" + name + " "; }
    Diary& diary;
    std::string name;
  };
};

void warm_up(StepGraphs& graphs, uint64_t layout) {
  for (int step = 0; step < StepGraphs::kWarmUpSteps; ++step) {
    graphs.begin_step(layout, 2, [](int) { FAIL() << "nothing is recorded in warm-up"; });
    EXPECT_FALSE(graphs.replays());
  }
}

TEST(StepGraphs, RecordsAfterWarmUpThenReplays) {
  Diary diary;
  StepGraphs graphs(diary.maker());
  warm_up(graphs, 5);
  graphs.begin_step(5, 2, [&](int piece) { diary.text += "w" + std::to_string(piece) + " "; });
  EXPECT_EQ(diary.taken(), "b0 w0 e0 b1s w1 e1s ");
  ASSERT_TRUE(graphs.replays());
  graphs.replay(0), graphs.replay(1), graphs.replay(1);
  EXPECT_EQ(diary.taken(), "r0 r1s r1s ");
  graphs.begin_step(5, 2, [](int) { FAIL() << "recorded already"; });
  EXPECT_TRUE(graphs.replays());
}

TEST(StepGraphs, AnotherLayoutBeginsAgain) {
  Diary diary;
  StepGraphs graphs(diary.maker());
  warm_up(graphs, 5);
  graphs.begin_step(5, 2, [](int) {});
  diary.taken();
  graphs.begin_step(6, 2, [](int) { FAIL() << "nothing is recorded in warm-up"; });
  EXPECT_EQ(diary.taken(), "f0 f1s ");
  EXPECT_FALSE(graphs.replays());
  for (int step = 1; step < StepGraphs::kWarmUpSteps; ++step) graphs.begin_step(6, 2, [](int) { FAIL(); });
  graphs.begin_step(6, 1, [](int) {});
  EXPECT_TRUE(graphs.replays());
}

TEST(StepGraphs, WorkThatCannotBeRecordedIsLeftAlone) {
  Diary diary;
  StepGraphs graphs(diary.maker());
  warm_up(graphs, 1);
  graphs.begin_step(1, 2, [](int piece) {
    if (piece == 1) throw std::runtime_error("the work waits for the device");
  });
  EXPECT_EQ(diary.taken(), "b0 e0 b1s a1s f0 f1s ");
  EXPECT_EQ(graphs.failure(), "the work waits for the device");
  EXPECT_FALSE(graphs.replays());
  for (uint64_t layout = 1; layout < 20; ++layout) graphs.begin_step(layout / 8, 2, [](int) { FAIL() << "given up"; });
}

TEST(StepGraphs, ARecordingThatCannotBeEndedIsNotAbandonedTwice) {
  Diary diary;
  diary.fails_at_end = true;
  StepGraphs graphs(diary.maker());
  warm_up(graphs, 1);
  graphs.begin_step(1, 1, [](int) {});
  EXPECT_EQ(diary.taken(), "b0 e0 f0 ");
  EXPECT_EQ(graphs.failure(), "cannot end");
}

}  // namespace
}  // namespace braid::device::step_graphs_test
