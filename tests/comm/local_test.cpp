// Thread ranks keep every promise of a communicator, with queues that run at once and with queues that lag.
#include "braid/comm/local/run_ranks.h"
#include "tests/comm/conformance.h"
#include "tests/support/delayed_queue.h"

namespace braid::comm::tests::local_test {
namespace {

struct OnHost {
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) { run_ranks(num_ranks, body); }
};

struct OnDelayedQueue {
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    ThreadRankOptions options;
    options.make_queue = [](int rank) { return std::make_unique<DelayedQueue>(rank); };
    run_ranks(num_ranks, body, options);
  }
};

const Backend kQueues[] = {{.name = "on_host", .run = OnHost::run},
                           {.name = "on_delayed_queue", .run = OnDelayedQueue::run}};

INSTANTIATE_TEST_SUITE_P(Local, Collectives, testing::ValuesIn(kQueues), name_of);
INSTANTIATE_TEST_SUITE_P(Local, Groups, testing::ValuesIn(kQueues), name_of);
INSTANTIATE_TEST_SUITE_P(Local, NamedCalls, testing::ValuesIn(kQueues), name_of);
INSTANTIATE_TEST_SUITE_P(Local, Programs, testing::ValuesIn(kQueues), name_of);
INSTANTIATE_TEST_SUITE_P(Local, RankChannels, testing::ValuesIn(kQueues), name_of);

}  // namespace
}  // namespace braid::comm::tests::local_test
