// The guarantees of a communicator over MPI. mpirun starts four of this program; each is a rank and runs all tests, in
// the same order. Their worlds are groups of the one world that MPI has.
//
//   mpirun -np 4 mpi_ranks FOLDER        ranks find each other by files of FOLDER
#include <gtest/gtest.h>

#include <cstdlib>

#include "braid/launch/engines.h"
#include "tests/comm/conformance.h"
#include "tests/comm/gloo_ranks.h"
#include "tests/comm/values.h"
#include "tests/support/folder_store.h"

namespace braid::comm::tests::mpi_ranks {
namespace {

constexpr int kRanks = 4;
Communicator* world_of_all = nullptr;

struct OnMpi {
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    if (num_ranks > kRanks) return;
    const int rank = world_of_all->rank();
    const auto world = world_of_all->split(rank < num_ranks ? 0 : 1, rank, "world");
    if (rank < num_ranks) body(*world);
    world_of_all->barrier().wait_host();
  }
};

const Backend kMpi = {.name = "mpi", .run = OnMpi::run, .is_dear = true, .num_programs = 20};

INSTANTIATE_TEST_SUITE_P(Mpi, Collectives, testing::Values(kMpi), name_of);
INSTANTIATE_TEST_SUITE_P(Mpi, Groups, testing::Values(kMpi), name_of);
INSTANTIATE_TEST_SUITE_P(Mpi, Programs, testing::Values(kMpi), name_of);
INSTANTIATE_TEST_SUITE_P(Mpi, RankChannels, testing::Values(kMpi), name_of);

TEST(MpiWorld, long_messages_overtake_each_other) {
  OnMpi::run(2, [](Communicator& world) {
    constexpr int64_t kCount = 1 << 20;
    const bool sends = world.rank() == 0;
    std::vector<P2p> transfers;
    for (int tag = 0; tag < 3; ++tag) {
      const at::Tensor tensor = empty<float>(kCount);
      if (sends) fill<float>(tensor, [=](int64_t i) { return value<float>(tag, 0, i); });
      transfers.push_back({sends ? P2p::Kind::Send : P2p::Kind::Recv, tensor, 1 - world.rank(), tag});
    }
    if (!sends) std::ranges::reverse(transfers);
    Work work = world.batch(transfers);
    work.wait_host();
    for (const P2p& transfer : transfers) {
      EXPECT_TRUE(holds<float>(transfer.tensor, [&](int64_t i) { return value<float>(transfer.tag, 0, i); }));
    }
  });
}

// Nobody waits for it, and the ranks end all the same.
TEST(MpiWorld, a_long_message_that_no_rank_receives_is_dropped_at_the_end) {
  if (world_of_all->rank() != 0) return;
  const P2p message{P2p::Kind::Send, empty<float>(1 << 20), 1, 99};
  world_of_all->batch({&message, 1});
}

int number_of(const char* variable) { return std::getenv(variable) ? std::atoi(std::getenv(variable)) : -1; }

int run_tests(const std::string& folder) {
  FolderStore store(folder);
  OneFailureState failures;
  HostQueue queue;
  const int rank = std::max(number_of("OMPI_COMM_WORLD_RANK"), number_of("PMI_RANK"));
  const auto world = launch::make_world(
      CommEngine::Mpi, {.self = {.rank = rank, .size = kRanks, .failures = &failures}, .store = &store}, queue);
  world_of_all = world.get();
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace braid::comm::tests::mpi_ranks

// Their worlds fail, and MPI has only one.
namespace braid::comm::tests {
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NamedCalls);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Failures);
}  // namespace braid::comm::tests

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return argc == 2 ? braid::comm::tests::mpi_ranks::run_tests(argv[1]) : 2;
}
