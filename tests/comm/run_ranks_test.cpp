// Ranks as threads: how they start, end, fail and are named. It does not test what collectives compute.
#include "braid/comm/local/run_ranks.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <thread>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/op_name.h"

namespace braid::comm::run_ranks_test {
namespace {

at::Tensor filled(int64_t count, double value) { return at::full({count}, value, at::kFloat); }

TEST(RunRanks, sums_over_ranks) {
  run_ranks(4, [](Communicator& world) {
    at::Tensor tensor = filled(1000, 1 + world.rank());
    world.all_reduce(tensor, ReduceOp::Sum).wait_host();
    EXPECT_EQ(tensor.const_data_ptr<float>()[999], 10);
  });
}

TEST(RunRanks, names_its_threads_and_uses_the_callers_for_a_single_rank) {
  run_ranks(2, [](Communicator& world) {
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof name);
    EXPECT_EQ(std::string(name), cat("rank ", world.rank()));
  });
  std::thread::id caller = std::this_thread::get_id(), seen;
  run_ranks(1, [&](Communicator& world) { seen = std::this_thread::get_id(); });
  EXPECT_EQ(seen, caller);
}

TEST(RunRanks, rethrows_the_exception_of_the_rank_that_failed_first) {
  for (int culprit = 0; culprit < 4; ++culprit) {
    try {
      run_ranks(4, [&](Communicator& world) {
        if (world.rank() == culprit) throw std::out_of_range("the weather");
        world.barrier().wait_host();
      });
      FAIL() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "the weather");
    }
  }
}

TEST(RunRanks, peers_of_a_failed_rank_learn_its_rank_and_reason) {
  std::atomic<int> told = 0;
  auto body = [&](Communicator& world) {
    if (world.rank() == 2) throw std::runtime_error("disk full");
    try {
      world.barrier().wait_host();
    } catch (const CommError& error) {
      EXPECT_EQ(error.failure().rank, 2);
      EXPECT_EQ(error.failure().why, "disk full");
      EXPECT_EQ(error.failure().op, "barrier #0 on world");
      ++told;
      throw;
    }
  };
  EXPECT_THROW(run_ranks(4, body), std::runtime_error);
  EXPECT_EQ(told, 3);
}

TEST(RunRanks, a_rank_that_ends_early_does_not_hang_its_peers) {
  try {
    run_ranks(3, [](Communicator& world) {
      if (world.rank() == 2) return;
      at::Tensor tensor = filled(10, 1);
      world.all_reduce(tensor, ReduceOp::Sum).wait_host();
    });
    FAIL() << "nothing was thrown";
  } catch (const CommError& error) {
    EXPECT_EQ(error.failure().rank, 2);
    EXPECT_EQ(error.failure().why, "has ended without joining all_reduce #0 on world");
  }
}

TEST(RunRanks, what_an_ended_rank_issued_still_completes) {
  run_ranks(3, [](Communicator& world) {
    at::Tensor tensor = filled(100, 1 + world.rank());
    Work work = world.all_reduce(tensor, ReduceOp::Sum);
    if (world.rank() == 2) return;
    work.wait_host();
    EXPECT_EQ(tensor.const_data_ptr<float>()[99], 6);
  });
}

TEST(RunRanks, a_deadline_names_who_is_missing) {
  ThreadRankOptions options{.deadline_seconds = 0.5};
  std::atomic<bool> over = false;
  try {
    run_ranks(
        3,
        [&](Communicator& world) {
          world.barrier().wait_host();
          const comm::CallName name("second");
          if (world.rank() == 0) {
            try {
              world.barrier().wait_host();
            } catch (const CommError&) {
              over = true;
              throw;
            }
          }
          while (!over) std::this_thread::yield();
        },
        options);
    FAIL() << "nothing was thrown";
  } catch (const CommError& error) {
    EXPECT_EQ(error.failure().rank, 1);
    EXPECT_EQ(
        error.failure().why,
        "did not arrive at barrier #1 on world for second within 0.5 s (missing: rank 1, 2); the last call of rank 1 "
        "there is #0 barrier()");
    EXPECT_GE(error.failure().elapsed_seconds, 0.5);
  }
}

TEST(RunRanks, an_abort_is_not_forgotten_when_nobody_throws) {
  EXPECT_THROW(run_ranks(2, [](Communicator& world) { world.abort("enough"); }), CommError);
}

TEST(RunRanks, something_that_is_no_exception_is_brought_home_too) {
  EXPECT_THROW(run_ranks(2,
                         [](Communicator& world) {
                           if (world.rank() == 1) throw 7;
                           world.barrier().wait_host();
                         }),
               int);
}

}  // namespace
}  // namespace braid::comm::run_ranks_test
