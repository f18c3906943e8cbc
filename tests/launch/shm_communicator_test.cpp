// Properties of process ranks: areas that are used again, rings that messages overtake each other
// in, works that outlive their communicator, more ranks than cores.
#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/comm/shm/shm_transport.h"
#include "braid/comm/transport/process_communicator.h"
#include "tests/comm/failures.h"
#include "tests/comm/values.h"
#include "tests/launch/forked.h"
#include "tests/support/delayed_queue.h"

namespace braid::launch::tests::shm_communicator_test {
namespace {

using comm::tests::empty;
using comm::tests::expected_sum;
using comm::tests::fill;
using comm::tests::holds;
using comm::tests::message;
using comm::tests::value;

at::Tensor filled(int64_t count, int salt, int rank) {
  at::Tensor tensor = empty<float>(count);
  fill<float>(tensor, [=](int64_t i) { return value<float>(salt, rank, i); });
  return tensor;
}

TEST(ProcessCommunicator, says_that_its_ranks_are_processes) {
  run_forked(2, [](Communicator& world) {
    EXPECT_EQ(world.rank_kind(), RankKind::Process);
    EXPECT_EQ(world.split(0, 0, "again")->rank_kind(), RankKind::Process);
  });
}

// Or it would count as hung where they take their time. Both are threads of a process of their own, which may have
// them.
TEST(ProcessCommunicator, a_rank_that_has_ended_says_that_it_waits_for_its_peers) {
  run_forked(1, [](Communicator& alone) {
    comm::shm::SharedWorld world(2);
    const auto communicator_of = [&](int rank) {
      return comm::transport::ProcessCommunicator::of_world(
          std::make_unique<comm::shm::ShmTransport>(world, rank),
          {.rank = rank, .size = 2, .failures = &world, .activity = &world.board().activity(rank)}, alone.queue());
    };
    auto sends = communicator_of(0);
    const auto receives = communicator_of(1);
    const Work sent = message(*sends, P2p::Kind::Send, 1, floats(1 << 20));  // more than the ring holds
    std::jthread end([&] { sends.reset(); });
    const auto waits_for = [&] { return world.board().activity(0).look().waits_in; };
    for (const double until = now_seconds() + kSoon; waits_for().empty() && now_seconds() < until;) poll(nullptr, 0, 1);
    EXPECT_EQ(waits_for(), "the end of all ranks");
    message(*receives, P2p::Kind::Recv, 0, floats(1 << 20)).wait_host();
    end.join();
    EXPECT_EQ(waits_for(), "");
  });
}

TEST(ProcessCommunicator, areas_of_groups_that_are_gone_are_used_again) {
  run_forked(4, [](Communicator& world) {
    for (int round = 0; round < 3 * comm::shm::SharedWorld::max_groups(4); ++round) {
      auto half = world.split((world.rank() + round) % 2, round % 3 == 0 ? -world.rank() : 0, "half");
      at::Tensor tensor = filled(3, round, world.rank());
      half->all_reduce(tensor, ReduceOp::Sum).wait_host();
      const int rank = world.rank(), other = (rank + 2) % 4;
      const auto sum = [=](int64_t i) { return value<float>(round, rank, i) + value<float>(round, other, i); };
      EXPECT_TRUE(holds<float>(tensor, sum));
    }
  });
}

TEST(ProcessCommunicator, says_when_there_is_no_room_for_another_group) {
  const auto body = [](Communicator& world) {
    std::vector<std::unique_ptr<Communicator>> groups;
    for (int i = 0; i < comm::shm::SharedWorld::max_groups(2); ++i) groups.push_back(world.split(0, 0, "another"));
  };
  try {
    run_forked(2, body);
    FAIL() << "nothing was thrown";
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "no room for another group of process ranks: all 256 are in use");
  }
}

// As on the mesh of a run: each of them has some ten groups, and may be alone in most.
TEST(ProcessCommunicator, has_room_for_ten_groups_of_each_of_64_ranks) {
  run_forked(64, [](Communicator& world) {
    std::vector<std::unique_ptr<Communicator>> groups;
    for (int i = 0; i < 10; ++i) groups.push_back(world.split(world.rank(), 0, "alone"));
  });
}

// 16 MiB of messages that nobody wants yet, in a ring of one.
TEST(ProcessCommunicator, messages_overtake_those_of_other_tags) {
  run_forked(2, [](Communicator& world) {
    constexpr int kMany = 16, kLast = 100;
    constexpr int64_t kCount = 1 << 18;
    std::vector<P2p> first;
    for (int tag = 0; tag < kMany; ++tag) {
      const bool sends = world.rank() == 0;
      first.push_back({sends ? P2p::Kind::Send : P2p::Kind::Recv, sends ? filled(kCount, tag, 0) : empty<float>(kCount),
                       1 - world.rank(), tag});
    }
    const at::Tensor last = world.rank() == 0 ? filled(5, kLast, 0) : empty<float>(5);
    const P2p one{first[0].kind, last, 1 - world.rank(), kLast};
    Work many;
    if (world.rank() == 0) many = world.batch(first);
    world.batch({&one, 1}).wait_host();
    EXPECT_TRUE(holds<float>(last, [](int64_t i) { return value<float>(kLast, 0, i); }));
    if (world.rank() == 1) many = world.batch(first);
    many.wait_host();
    for (int tag = 0; tag < kMany; ++tag) {
      EXPECT_TRUE(holds<float>(first[tag].tensor, [=](int64_t i) { return value<float>(tag, 0, i); }));
    }
  });
}

TEST(ProcessCommunicator, works_outlive_their_group) {
  const auto body = [](Communicator& world) {
    constexpr int64_t kCount = 300000;
    at::Tensor tensor = filled(kCount, 1, world.rank());
    Work work = world.split(0, 0, "short-lived")->all_reduce(tensor, ReduceOp::Sum);
    work.wait_host();
    EXPECT_TRUE(holds<float>(tensor, [](int64_t i) { return expected_sum<float>(1, 3, i, ReduceOp::Sum); }));
  };
  run_forked(3, body);
  run_forked_on_queues(3, body, [](int rank) { return std::make_unique<DelayedQueue>(rank, 5e-3); });
}

TEST(ProcessCommunicator, sixteen_ranks_on_few_cores_get_through) {
  run_forked(16, [](Communicator& world) {
    for (int round = 0; round < 30; ++round) {
      at::Tensor tensor = filled(5000, round, world.rank());
      world.all_reduce(tensor, ReduceOp::Sum).wait_host();
      EXPECT_TRUE(holds<float>(tensor, [=](int64_t i) { return expected_sum<float>(round, 16, i, ReduceOp::Sum); }));
    }
  });
}

}  // namespace
}  // namespace braid::launch::tests::shm_communicator_test
