// The start and the end of MPI when one of its calls never returns. tests/comm/mpi has those of real MPIs.
#include "braid/comm/mpi/mpi_wire.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "braid/control/key_value_store.h"

namespace braid::comm::tests::mpi_wire_test {
namespace {

// Rank 0 of two, whose call of MPI named `hangs` never returns.
class HangingMpi {
 public:
  HangingMpi(const char* hangs, double start_seconds) : start_seconds_(start_seconds) {
    setenv("BRAID_FAKE_MPI_HANGS", hangs, 1);
    store_.set("mpi/1", "1");
  }
  ~HangingMpi() { unsetenv("BRAID_FAKE_MPI_HANGS"); }

  mpi::MpiWire::Options options() {
    return {.plugin = BRAID_FAKE_MPI,
            .store = &store_,
            .given_up = [] { return false; },
            .start_seconds = start_seconds_,
            .finish_seconds = 0.3};
  }

 private:
  const double start_seconds_;
  control::LocalStore store_;
};

TEST(MpiWire, a_rank_that_stays_in_the_start_throws_at_the_deadline) {
  HangingMpi mpi("start", 0.3);
  try {
    mpi::MpiWire wire(mpi.options());
    FAIL() << "has started";
  } catch (const transport::WireError& error) {
    EXPECT_EQ(std::string(error.what()), "is in MPI_Init of Fake MPI 1 for 0.3 s");
  }
}

TEST(MpiWire, a_rank_that_stays_in_the_end_leaves_it_at_the_deadline) {
  HangingMpi mpi("finish", 30);
  mpi::MpiWire wire(mpi.options());
  wire.finish();
}

}  // namespace
}  // namespace braid::comm::tests::mpi_wire_test
