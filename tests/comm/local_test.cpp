// Thread ranks keep every promise of a communicator, with queues that run at once and with queues that lag.
#include "braid/comm/local/run_ranks.h"
#include "tests/comm/conformance.h"
#include "tests/support/delayed_queue.h"

namespace braid::comm_tests {
namespace {

struct OnHost {
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) { run_ranks(num_ranks, body); }
};

struct OnDelayedQueue {
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    LocalOptions options;
    options.make_queue = [](int rank) { return std::make_unique<DelayedQueue>(rank); };
    run_ranks(num_ranks, body, options);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(LocalOnHost, Collectives, OnHost);
INSTANTIATE_TYPED_TEST_SUITE_P(LocalOnDelayedQueue, Collectives, OnDelayedQueue);

}  // namespace
}  // namespace braid::comm_tests
