// Thread ranks keep every promise of a communicator, with queues that run at once and with queues that lag.
#include "braid/comm/local/run_ranks.h"
#include "tests/comm/conformance.h"
#include "tests/comm/conformance_calls.h"
#include "tests/comm/conformance_channels.h"
#include "tests/comm/conformance_groups.h"
#include "tests/comm/random_program.h"
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

using Queues = testing::Types<OnHost, OnDelayedQueue>;

struct QueueNames {
  template <class Backend>
  static std::string GetName(int) {
    return std::is_same_v<Backend, OnHost> ? "on_host" : "on_delayed_queue";
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Local, Collectives, Queues, QueueNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Local, Groups, Queues, QueueNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Local, NamedCalls, Queues, QueueNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Local, Programs, Queues, QueueNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Local, RankChannels, Queues, QueueNames);

}  // namespace
}  // namespace braid::comm::tests::local_test
