// Process ranks as threads of the test, so that ThreadSanitizer sees them: over a wire in memory, with the connections
// of Gloo and MPI, and over shared memory.
#include <gtest/gtest.h>

#include "braid/comm/shm/shm_transport.h"
#include "braid/comm/tcp/make_tcp_world.h"
#include "tests/comm/conformance.h"
#include "tests/comm/failures.h"
#include "tests/comm/memory_wire.h"

namespace braid::comm::tests::transport_test {
namespace {

struct OverWire {
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    Medium medium(num_ranks);
    run_wire_ranks(medium, {.size = num_ranks}, body);
  }
};

struct OverSharedMemory {
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    shm::SharedWorld world(num_ranks);
    const auto make_world = [&](int rank, Queue& queue) {
      return world_over(std::make_unique<shm::ShmTransport>(world, rank), {.size = num_ranks}, rank, world, queue);
    };
    run_ranks_on(num_ranks, world, make_world, body);
  }
};

struct OverTcp {
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    control::LocalStore store;
    OneFailureState failures;
    const auto make_world = [&](int rank, Queue& queue) {
      return make_tcp_world({.self = {.rank = rank, .size = num_ranks, .failures = &failures}, .store = &store}, queue);
    };
    run_ranks_on(num_ranks, failures, make_world, body);
  }
};

const Backend kTransports[] = {
    {.name = "wire", .run = OverWire::run, .num_programs = 20, .more = 8 << 20},
    {.name = "shared_memory", .run = OverSharedMemory::run, .num_programs = 20, .more = 8 << 20},
    {.name = "tcp",
     .run = OverTcp::run,
     .num_programs = 20,
     .more = 16 << 20,  // more than the buffers of a connection on loopback
     .buffers_sends = true}};

INSTANTIATE_TEST_SUITE_P(Transport, Collectives, testing::ValuesIn(kTransports), name_of);
INSTANTIATE_TEST_SUITE_P(Transport, Groups, testing::ValuesIn(kTransports), name_of);
INSTANTIATE_TEST_SUITE_P(Transport, NamedCalls, testing::ValuesIn(kTransports), name_of);
INSTANTIATE_TEST_SUITE_P(Transport, Programs, testing::ValuesIn(kTransports), name_of);
INSTANTIATE_TEST_SUITE_P(Transport, RankChannels, testing::ValuesIn(kTransports), name_of);
INSTANTIATE_TEST_SUITE_P(Transport, Failures, testing::ValuesIn(kTransports), name_of);

}  // namespace
}  // namespace braid::comm::tests::transport_test
