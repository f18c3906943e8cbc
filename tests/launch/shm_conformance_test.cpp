// Process ranks keep every promise of a communicator, with queues that run at once and with queues that lag.
#include "tests/comm/conformance.h"
#include "tests/launch/forked.h"
#include "tests/support/delayed_queue.h"

namespace braid::comm::tests::shm_conformance_test {
namespace {

struct OnProcesses {
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    launch::tests::run_forked(num_ranks, body);
  }
};

struct OnProcessesWithDelayedQueue {
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    launch::tests::run_forked_on_queues(num_ranks, body, [](int rank) { return std::make_unique<DelayedQueue>(rank); });
  }
};

const Backend kQueues[] = {{.name = "on_host", .run = OnProcesses::run, .num_programs = 150},
                           {.name = "on_delayed_queue", .run = OnProcessesWithDelayedQueue::run, .num_programs = 50}};

INSTANTIATE_TEST_SUITE_P(Shm, Collectives, testing::ValuesIn(kQueues), name_of);
INSTANTIATE_TEST_SUITE_P(Shm, Groups, testing::ValuesIn(kQueues), name_of);
INSTANTIATE_TEST_SUITE_P(Shm, Programs, testing::ValuesIn(kQueues), name_of);
INSTANTIATE_TEST_SUITE_P(Shm, RankChannels, testing::ValuesIn(kQueues), name_of);

// A test of the tests: what a rank expects in vain reaches the parent.
TEST(Forked, a_failed_expectation_of_a_rank_is_thrown_with_its_place) {
  try {
    launch::tests::run_forked(3, [](Communicator& world) {
      EXPECT_NE(world.rank(), 1) << "by the way";
      world.barrier().wait_host();
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    const std::string said = error.what();
    EXPECT_TRUE(said.starts_with("rank 1: ")) << said;
    EXPECT_NE(said.find("shm_conformance_test.cpp:"), std::string::npos) << said;
    EXPECT_NE(said.find("by the way"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace braid::comm::tests::shm_conformance_test
