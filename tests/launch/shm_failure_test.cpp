// Ways in which process ranks fail: killed, thrown, aborted, gone, at odds, late. Everybody learns the same first
// failure, at once where nobody has to wait for a deadline, and nobody is left.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "tests/comm/conformance.h"
#include "tests/comm/failures.h"
#include "tests/comm/values.h"
#include "tests/launch/forked.h"
#include "tests/support/shared_array.h"

namespace braid::launch::tests::shm_failure_test {
namespace {

using comm::tests::message;
using Body = std::function<void(Communicator&)>;

// A failure is told long before the deadline.
void run_in_time(int num_ranks, const Body& body, double deadline) {
  const double begin = now_seconds();
  try {
    run_forked(num_ranks, body, {.deadline_seconds = deadline});
  } catch (const CommError&) {
    EXPECT_LT(now_seconds() - begin, kSoon);
    throw;
  }
}

const comm::tests::Backend kShm = {
    .name = "shm",
    .run = [](int num_ranks, const Body& body) { run_in_time(num_ranks, body, kDeadline); },
    .more = 1 << 20};

CommFailure failure_of(int num_ranks, const Body& body, double deadline = kDeadline) {
  return comm::tests::failure_in([&] { run_in_time(num_ranks, body, deadline); });
}

// Rank 1 dies in one of many ways, the others wait for it: all are told its rank and why. It does not die before the
// others have left the barrier, which would be told too.
void expect_told_of_death(const Body& last_act, const Body& waiting) {
  SharedArray<int> told, begun;
  const CommFailure failure = failure_of(3, [&](Communicator& world) {
    world.barrier().wait_host();
    ++begun[0];
    if (world.rank() == 1) {
      while (begun[0] < 3) std::this_thread::yield();
      last_act(world);
    }
    try {
      waiting(world);
    } catch (const CommError& error) {
      EXPECT_EQ(error.failure().rank, 1);
      EXPECT_TRUE(error.failure().why.starts_with("killed by signal 9 (Killed), process ")) << error.failure().why;
      ++told[0];
      throw;
    }
  });
  EXPECT_EQ(failure.rank, 1);
  EXPECT_TRUE(failure.why.starts_with("killed by signal 9 (Killed), process ")) << failure.why;
  EXPECT_EQ(told[0], 2);
}

TEST(Killed, between_calls) {
  expect_told_of_death([](Communicator&) { die(); }, [](Communicator& world) { world.barrier().wait_host(); });
}

TEST(Killed, inside_an_all_reduce_that_others_are_in_the_middle_of) {
  const auto reduce = [](Communicator& world) {
    const at::Tensor tensor = floats(1 << 20);
    for (;;) world.all_reduce(tensor, ReduceOp::Sum).wait_host();
  };
  const auto last_act = [&](Communicator& world) {
    std::jthread end([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      die();
    });
    reduce(world);
  };
  expect_told_of_death(last_act, reduce);
}

TEST(Killed, while_it_receives_and_while_others_receive_from_it) {
  const auto receive = [](Communicator& world) {
    message(world, P2p::Kind::Recv, world.rank() == 1 ? 0 : 1, floats(4)).wait_host();
  };
  const auto last_act = [&](Communicator& world) {
    std::jthread end([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      die();
    });
    receive(world);
  };
  expect_told_of_death(last_act, receive);
}

TEST(Killed, while_others_fill_its_ring) {
  expect_told_of_death([](Communicator&) { die(); },
                       [](Communicator& world) {
                         message(world, P2p::Kind::Send, 1, floats(10 << 20)).wait_host();
                         world.barrier().wait_host();
                       });
}

TEST(Killed, with_nobody_waiting_is_told_all_the_same) {
  const CommFailure failure = failure_of(2, [](Communicator& world) {
    if (world.rank() == 1) die();
  });
  EXPECT_EQ(failure.rank, 1);
}

TEST(Mismatch, names_both_ranks_and_what_they_called) {
  const CommFailure failure = failure_of(3, [](Communicator& world) {
    world.barrier().wait_host();
    Work work = world.rank() == 1 ? world.broadcast(floats(10), 1) : world.all_reduce(floats(1 << 20), ReduceOp::Max);
    work.wait_host();
  });
  const std::string odd = "called broadcast(Float[10], root 1)", usual = "called all_reduce(Float[1048576], max)";
  const std::string end = " (call #1 on world)";
  EXPECT_TRUE(failure.rank == 1 ? failure.why.starts_with(odd + " where rank ") && failure.why.ends_with(usual + end)
                                : failure.why == cat(usual, " where rank 1 ", odd, end))
      << failure.rank << ": " << failure.why;
}

TEST(Deadline, names_who_is_missing) {
  SharedArray<int> over;
  const auto body = [&](Communicator& world) {
    comm::tests::sum_for(world, "first");
    const comm::CallName name("second");
    if (world.rank() == 0) {
      EXPECT_THROW(world.barrier().wait_host(), CommError);
      over[0] = 1;
    }
    while (over[0] == 0) std::this_thread::yield();
  };
  const CommFailure failure = failure_of(3, body, 2);
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.why,
            "did not arrive at barrier #1 on world for second within 2 s (missing: rank 1, 2); the last call of rank 1 "
            "there is #0 all_reduce(Float[8], sum) for first");
}

TEST(Deadline, of_a_message_names_the_peer) {
  const auto body = [](Communicator& world) {
    const int peer = 1 - world.rank();
    message(world, P2p::Kind::Recv, peer, floats(1)).wait_host();
  };
  const CommFailure failure = failure_of(2, body, 0.5);
  EXPECT_TRUE(failure.why.starts_with("did not arrive at transfer ")) << failure.why;
  EXPECT_NE(failure.why.find(cat("(missing: rank ", failure.rank, ")")), std::string::npos) << failure.why;
}

TEST(Deadline, of_a_message_that_stops_in_the_middle_names_the_sender) {
  SharedArray<int> sent, over;
  const auto body = [&](Communicator& world) {
    if (world.rank() == 0) {
      Work work = message(world, P2p::Kind::Send, 1, floats(10 << 20));
      sent[0] = 1;
      while (over[0] == 0) std::this_thread::yield();  // without moving the rest of the message
      return;
    }
    while (sent[0] == 0) std::this_thread::yield();  // a receiver at work would let the sender move all of it at once
    EXPECT_THROW(message(world, P2p::Kind::Recv, 0, floats(10 << 20)).wait_host(), CommError);
    over[0] = 1;
  };
  const CommFailure failure = failure_of(2, body, 0.5);
  EXPECT_EQ(failure.rank, 0);
  EXPECT_EQ(failure.why, "did not finish its part of transfer 0 -> 1 tag 9 on world in batch #0 within 0.5 s");
}

TEST(Ends, ranks_that_leave_with_hopeless_works_do_not_wait_for_each_other) {
  run_forked(3, [](Communicator& world) {
    const int next = (world.rank() + 1) % 3;
    message(world, P2p::Kind::Send, next, floats(10 << 20), world.rank());
    message(world, P2p::Kind::Recv, next, floats(1), 100);
    if (world.rank() == 0) world.barrier();
  });
}

}  // namespace
}  // namespace braid::launch::tests::shm_failure_test

namespace braid::comm::tests {

INSTANTIATE_TEST_SUITE_P(Shm, Failures, testing::Values(launch::tests::shm_failure_test::kShm), name_of);
INSTANTIATE_TEST_SUITE_P(Shm, NamedCalls, testing::Values(launch::tests::shm_failure_test::kShm), name_of);

}  // namespace braid::comm::tests
