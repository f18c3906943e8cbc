// Process ranks as threads of the test, so that ThreadSanitizer sees them: over a wire in memory, with the connections
// of Gloo and MPI, and over shared memory.
#include <gtest/gtest.h>

#include "braid/comm/shm/shm_transport.h"
#include "braid/comm/tcp/make_tcp_world.h"
#include "tests/comm/conformance.h"
#include "tests/comm/conformance_calls.h"
#include "tests/comm/conformance_channels.h"
#include "tests/comm/conformance_groups.h"
#include "tests/comm/failures.h"
#include "tests/comm/memory_wire.h"
#include "tests/comm/random_program.h"

namespace braid::comm::tests::transport_test {
namespace {

struct OverWire {
  static constexpr int kPrograms = 20;
  static constexpr int64_t kMore = 8 << 20;
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    Medium medium(num_ranks);
    run_wire_ranks(medium, {.size = num_ranks}, body);
  }
};

struct OverSharedMemory {
  static constexpr int kPrograms = 20;
  static constexpr int64_t kMore = 8 << 20;
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    shm::SharedWorld world(num_ranks);
    const auto make_world = [&](int rank, Queue& queue) {
      return world_over(std::make_unique<shm::ShmTransport>(world, rank), {.size = num_ranks}, rank, world, queue);
    };
    run_ranks_on(num_ranks, world, make_world, body);
  }
};

struct OverTcp {
  static constexpr bool kBuffersSends = true;
  static constexpr int kPrograms = 20;
  static constexpr int64_t kMore = 16 << 20;  // more than the buffers of a connection on loopback
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    control::LocalStore store;
    OneFailureState failures;
    const auto make_world = [&](int rank, Queue& queue) {
      return make_tcp_world({.self = {.rank = rank, .size = num_ranks, .failures = &failures}, .store = &store}, queue);
    };
    run_ranks_on(num_ranks, failures, make_world, body);
  }
};

using Transports = testing::Types<OverWire, OverSharedMemory, OverTcp>;

struct TransportNames {
  template <class Backend>
  static std::string GetName(int) {
    if (std::is_same_v<Backend, OverTcp>) return "tcp";
    return std::is_same_v<Backend, OverWire> ? "wire" : "shared_memory";
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Transport, Collectives, Transports, TransportNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Transport, Groups, Transports, TransportNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Transport, NamedCalls, Transports, TransportNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Transport, Programs, Transports, TransportNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Transport, RankChannels, Transports, TransportNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Transport, Failures, Transports, TransportNames);

}  // namespace
}  // namespace braid::comm::tests::transport_test
