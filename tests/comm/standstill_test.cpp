// Worlds in which nobody can go on: noticed at once, always, and never where somebody can.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <thread>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/comm/message_program.h"
#include "tests/comm/values.h"
#include "tests/support/delayed_queue.h"

namespace braid::comm::tests::standstill_test {
namespace {

constexpr double kNever = 600;  // seconds; longer than the test may take

// The reason that run_ranks gives, or empty when it returns.
std::string outcome(int num_ranks, const std::function<void(Communicator&)>& body, ThreadRankOptions options = {}) {
  options.deadline_seconds = kNever;
  try {
    run_ranks(num_ranks, body, options);
  } catch (const CommError& error) {
    return error.failure().why;
  }
  return "";
}

ThreadRankOptions with_delayed_queues() {
  ThreadRankOptions options;
  options.make_queue = [](int rank) { return std::make_unique<DelayedQueue>(rank); };
  return options;
}

Work message(Communicator& group, P2p::Kind kind, int peer, const at::Tensor& tensor = empty<int>(1)) {
  const P2p one{kind, tensor, peer, 5};
  return group.batch({&one, 1});
}

TEST(Standstill, two_that_receive_before_they_send) {
  const auto body = [](Communicator& world) {
    message(world, P2p::Kind::Recv, 1 - world.rank()).wait_host();
    message(world, P2p::Kind::Send, 1 - world.rank()).wait_host();
  };
  const char* expected =
      "no rank can continue: rank 0 waits for transfer 1 -> 0 tag 5 on world in batch #0 (missing: rank 1); "
      "rank 1 waits for transfer 0 -> 1 tag 5 on world in batch #0 (missing: rank 0)";
  EXPECT_EQ(outcome(2, body), expected);
}

TEST(Standstill, every_kind_of_wait_takes_part) {
  const auto body = [](Communicator& world) {
    auto pair = world.split(world.rank() % 2, 0, "pair");
    switch (world.rank()) {
      case 0:
        world.split(0, 0, "never");
        break;
      case 1:
        pair->barrier().wait_host();
        break;
      case 2: {
        HostQueue queue;
        pair->all_reduce(empty<float>(3).zero_(), ReduceOp::Sum).order_before(queue);
        break;
      }
      case 3:
        message(world, P2p::Kind::Send, 2).wait_host();
    }
  };
  const char* expected =
      "no rank can continue: rank 0 waits for split #1 on world (missing: rank 1, 2, 3); "
      "rank 1 waits for barrier #0 on pair (missing: rank 3); "
      "rank 2 waits for all_reduce #0 on pair (missing: rank 0); "
      "rank 3 waits for transfer 3 -> 2 tag 5 on world in batch #0 (missing: rank 2)";
  for (int round = 0; round < 20; ++round) EXPECT_EQ(outcome(4, body), expected);
}

TEST(Standstill, ranks_that_have_ended_bring_nothing) {
  const auto body = [](Communicator& world) {
    if (world.rank() < 2) message(world, P2p::Kind::Recv, 1 - world.rank()).wait_host();
    if (world.rank() == 3) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  const std::string why = outcome(4, body);
  EXPECT_TRUE(why.ends_with("; rank 2 has ended; rank 3 has ended")) << why;
}

TEST(Standstill, a_rank_that_waits_for_itself) {
  const char* expected =
      "no rank can continue: rank 0 waits for transfer 0 -> 0 tag 5 on world in batch #0 (missing: rank 0)";
  EXPECT_EQ(outcome(1, [](Communicator& world) { message(world, P2p::Kind::Recv, 0).wait_host(); }), expected);
}

TEST(Standstill, queues_with_a_thread_of_their_own) {
  const auto body = [](Communicator& world) {
    message(world, P2p::Kind::Recv, 1 - world.rank()).order_before(world.queue());
    message(world, P2p::Kind::Send, 1 - world.rank());  // behind the receive
    if (world.rank() == 0) world.barrier().wait_host();
  };
  const char* expected =
      "no rank can continue: rank 0 waits for barrier #0 on world (missing: rank 0, 1); "
      "the queue of rank 0 waits for transfer 1 -> 0 tag 5 on world in batch #0 (missing: rank 1); "
      "the queue of rank 1 waits for transfer 0 -> 1 tag 5 on world in batch #0 (missing: rank 0)";
  for (int round = 0; round < 20; ++round) EXPECT_EQ(outcome(2, body, with_delayed_queues()), expected);
}

// The first to wait is woken by what the second has left in its queue, long after both are asleep.
TEST(Standstill, is_none_while_a_queue_has_tasks) {
  ThreadRankOptions slow;
  slow.make_queue = [](int rank) { return std::make_unique<DelayedQueue>(rank, 10e-3); };
  const auto body = [](Communicator& world) {
    for (int round = 0; round < 10; ++round) {
      Work work = world.barrier();
      world.queue().enqueue([] {});
      work.wait_host();
    }
  };
  EXPECT_EQ(outcome(3, body, slow), "");
}

TEST(Standstill, is_none_while_a_rank_waits_outside_the_communicator) {
  const auto body = [](Communicator& world) {
    if (world.rank() < 2) return message(world, P2p::Kind::Recv, 2).wait_host();
    std::latch called(1);
    std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      called.count_down();
    });
    called.wait();
    for (int peer : {0, 1}) message(world, P2p::Kind::Send, peer).wait_host();
  };
  EXPECT_EQ(outcome(3, body), "");
}

// A rank is its own thread: another that waits in its name does not make it wait.
TEST(Standstill, is_none_while_only_a_helper_of_a_rank_waits) {
  const auto body = [](Communicator& world) {
    Work receive = message(world, P2p::Kind::Recv, 1 - world.rank());
    std::jthread helper;
    if (world.rank() == 0) {
      helper = std::jthread([receive]() mutable { receive.wait_host(); });
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    } else {
      receive.wait_host();
    }
    message(world, P2p::Kind::Send, 1 - world.rank()).wait_host();
  };
  EXPECT_EQ(outcome(2, body), "");
}

void play(Communicator& world, const MessagePrograms& programs, std::vector<int>& received) {
  using Kind = MessageStep::Kind;
  std::vector<Work> works;
  for (const MessageStep& step : programs.ranks[world.rank()]) {
    if (step.kind == Kind::Barrier) {
      world.barrier().wait_host();
      continue;
    }
    const bool receives = step.kind == Kind::Receive;
    const at::Tensor tensor = empty<int>(1);
    if (!receives) *tensor.mutable_data_ptr<int>() = step.value;
    const P2p one{receives ? P2p::Kind::Recv : P2p::Kind::Send, tensor, step.peer, step.tag};
    Work work = world.batch({&one, 1});
    if (step.kind == Kind::Send) {
      works.push_back(work);
    } else {
      work.wait_host();
    }
    if (receives) received.push_back(*tensor.const_data_ptr<int>());
  }
  for (Work& work : works) work.wait_host();
}

TEST(Standstill, is_found_exactly_where_a_serial_play_finds_it) {
  const uint64_t count = kTsan ? 200 : full_run() ? 50000 : 1000;
  int stopped = 0;
  for (uint64_t seed = 0; seed < count && !HasFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const MessagePrograms programs = message_programs(seed);
    const MessageVerdict verdict(programs);
    std::vector<std::vector<int>> received(programs.ranks.size());
    const std::string why = outcome(
        static_cast<int>(programs.ranks.size()),
        [&](Communicator& world) { play(world, programs, received[world.rank()]); },
        seed % 4 ? ThreadRankOptions{} : with_delayed_queues());
    EXPECT_EQ(why.empty(), verdict.ends()) << why;
    if (why.empty()) {
      EXPECT_EQ(received, verdict.received());
    }
    const bool known = why.starts_with("no rank can continue") || why.starts_with("has ended without joining");
    EXPECT_TRUE(why.empty() || known) << why;
    stopped += !why.empty();
  }
  EXPECT_GT(stopped, static_cast<int>(count) / 5);
  EXPECT_LT(stopped, static_cast<int>(count) * 4 / 5);
}

}  // namespace
}  // namespace braid::comm::tests::standstill_test
