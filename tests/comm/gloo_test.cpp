// Ranks over Gloo keep every promise of a communicator, with queues that run at once and with queues that lag; and what
// is special about them: rounds, long messages that overtake each other, what is left behind, sums of the engine.
#include <atomic>
#include <filesystem>

#include "tests/comm/conformance.h"
#include "tests/comm/gloo_ranks.h"
#include "tests/support/delayed_queue.h"
#include "tests/support/held_bytes.h"

namespace braid::comm::tests::gloo_test {
namespace {

struct OnGloo {
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) { run_gloo_ranks(num_ranks, body); }
};

struct OnGlooWithDelayedQueue {
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    run_gloo_ranks(num_ranks, body, {.make_queue = [](int rank) { return std::make_unique<DelayedQueue>(rank); }});
  }
};

const Backend kQueues[] = {
    {.name = "on_host", .run = OnGloo::run, .is_dear = true, .num_programs = 20},
    {.name = "on_delayed_queue", .run = OnGlooWithDelayedQueue::run, .is_dear = true, .num_programs = 10}};

INSTANTIATE_TEST_SUITE_P(Gloo, Collectives, testing::ValuesIn(kQueues), name_of);
INSTANTIATE_TEST_SUITE_P(Gloo, Groups, testing::ValuesIn(kQueues), name_of);
INSTANTIATE_TEST_SUITE_P(Gloo, NamedCalls, testing::ValuesIn(kQueues), name_of);
INSTANTIATE_TEST_SUITE_P(Gloo, Programs, testing::ValuesIn(kQueues), name_of);
INSTANTIATE_TEST_SUITE_P(Gloo, RankChannels, testing::ValuesIn(kQueues), name_of);

at::Tensor filled(int64_t count, int salt, int rank) {
  const at::Tensor tensor = empty<float>(count);
  fill<float>(tensor, [=](int64_t i) { return value<float>(salt, rank, i); });
  return tensor;
}

// Returns the number of entries of a directory of /proc/self.
size_t entries(const char* directory) {
  return std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator());
}

TEST(GlooWorld, of_one_rank_needs_no_engine) {
  run_gloo_ranks(1, [](Communicator& world) {
    EXPECT_EQ(world.rank_kind(), RankKind::Process);
    const at::Tensor tensor = filled(5, 1, 0);
    world.all_reduce(tensor, ReduceOp::Sum).wait_host();
    EXPECT_TRUE(holds<float>(tensor, [](int64_t i) { return value<float>(1, 0, i); }));
    EXPECT_EQ(world.split(0, 0, "again")->size(), 1);
  });
}

// More than the window holds at a time, and no multiple of a round.
TEST(GlooWorld, collectives_of_many_rounds) {
  const int64_t count = (full_run() ? 20 << 20 : 6 << 20) + 77;
  for (const int ranks : {2, 3}) {
    run_gloo_ranks(ranks, [=](Communicator& world) {
      const int rank = world.rank();
      const at::Tensor tensor = filled(count, 1, rank), all = empty<float>(ranks * count), own = empty<float>(count);
      Work reduced = world.all_reduce(tensor, ReduceOp::Sum);
      const at::Tensor in = filled(count, 2, rank);
      world.all_gather(all, in).wait_host();
      world.reduce_scatter(own, all, ReduceOp::Max).wait_host();
      world.broadcast(all, ranks - 1).wait_host();
      reduced.wait_host();
      const auto sampled_from = [&](const at::Tensor& whole, int64_t begin) { return whole.narrow(0, begin, 1000); };
      for (const int64_t begin : {int64_t{0}, count / 2, count - 1000}) {
        EXPECT_TRUE(holds<float>(sampled_from(tensor, begin),
                                 [=](int64_t i) { return expected_sum<float>(1, ranks, begin + i, ReduceOp::Sum); }));
        EXPECT_TRUE(
            holds<float>(sampled_from(own, begin), [=](int64_t i) { return value<float>(2, rank, begin + i); }));
        EXPECT_TRUE(
            holds<float>(sampled_from(all, count + begin), [=](int64_t i) { return value<float>(2, 1, begin + i); }));
      }
    });
  }
}

// Nobody wants the first messages yet; what is wanted comes all the same.
TEST(GlooWorld, messages_overtake_those_of_other_tags) {
  run_gloo_ranks(2, [](Communicator& world) {
    constexpr int kMany = 8, kLast = 100;
    constexpr int64_t kCount = 1 << 18;
    std::vector<P2p> first;
    const auto kind = world.rank() == 0 ? P2p::Kind::Send : P2p::Kind::Recv;
    const auto made = [&](int64_t count, int tag) {
      return world.rank() == 0 ? filled(count, tag, 0) : empty<float>(count);
    };
    for (int tag = 0; tag < kMany; ++tag) first.push_back({kind, made(kCount, tag), 1 - world.rank(), tag});
    const P2p last{kind, made(5, kLast), 1 - world.rank(), kLast};
    Work many;
    if (world.rank() == 0) many = world.batch(first);
    world.batch({&last, 1}).wait_host();
    EXPECT_TRUE(holds<float>(last.tensor, [](int64_t i) { return value<float>(kLast, 0, i); }));
    if (world.rank() == 1) many = world.batch(first);
    many.wait_host();
    for (int tag = 0; tag < kMany; ++tag) {
      EXPECT_TRUE(holds<float>(first[tag].tensor, [=](int64_t i) { return value<float>(tag, 0, i); }));
    }
  });
}

// 90 MB one way. The receiver says what it has seen, or the sender would keep all of it.
TEST(GlooWorld, what_has_been_seen_is_not_kept) {
  constexpr int kMany = 1500, kCount = 15000;
  std::atomic<int> received = 0;
  run_gloo_ranks(2, [&](Communicator& world) {
    const size_t before = held_bytes();
    for (int i = 0; i < kMany; ++i) {
      while (world.rank() == 0 && received < i - 50) std::this_thread::yield();
      const at::Tensor one = world.rank() == 0 ? filled(kCount, 1, 0) : empty<float>(kCount);
      const P2p message{world.rank() == 0 ? P2p::Kind::Send : P2p::Kind::Recv, one, 1 - world.rank(), 0};
      world.batch({&message, 1}).wait_host();
      if (world.rank() == 1) ++received;
    }
    EXPECT_LT(held_bytes(), before + (45 << 20));
  });
}

// For longer than connecting may take: Gloo counts that as the limit of every wait unless it is told otherwise.
TEST(GlooWorld, may_be_idle) {
  run_gloo_ranks(2,
                 [](Communicator& world) {
                   std::this_thread::sleep_for(std::chrono::milliseconds(2300));
                   world.barrier().wait_host();
                 },
                 {.deadline_seconds = 2});
}

TEST(GlooWorld, works_outlive_their_group) {
  run_gloo_ranks(3, [](Communicator& world) {
    const at::Tensor tensor = filled(300000, 1, world.rank());
    Work work = world.split(0, 0, "short-lived")->all_reduce(tensor, ReduceOp::Sum);
    work.wait_host();
    EXPECT_TRUE(holds<float>(tensor, [](int64_t i) { return expected_sum<float>(1, 3, i, ReduceOp::Sum); }));
  });
}

TEST(GlooWorld, leaves_no_thread_and_no_socket) {
  run_gloo_ranks(2, [](Communicator& world) { world.barrier().wait_host(); });  // what a process starts once
  const size_t threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
  run_gloo_ranks(3,
                 [](Communicator& world) {
                   auto pair = world.split(world.rank() / 2, 0, "pair");
                   pair->all_reduce(filled(100000, 1, world.rank()), ReduceOp::Sum).wait_host();
                   world.barrier();  // not waited for
                 },
                 {.sums = ReductionOrder::Engine});
  EXPECT_EQ(entries("/proc/self/task"), threads);
  EXPECT_EQ(entries("/proc/self/fd"), files);
}

// Whole numbers, whose sums are exact in any order.
TEST(EngineSums, are_sums_on_all_ranks_of_all_groups) {
  const auto body = [](Communicator& world) {
    auto half = world.split(world.rank() % 2, 0, "half");
    std::vector<Work> works;
    std::vector<at::Tensor> tensors;
    for (int i = 0; i < 12; ++i) {
      tensors.push_back(empty<float>(i % 3 == 0 ? 100 : 50000 + 1000 * i));
      fill<float>(tensors[i], [&](int64_t j) { return static_cast<float>((j % 100) * (world.rank() + 1)); });
      works.push_back((i % 2 ? *half : world).all_reduce(tensors[i], ReduceOp::Sum));
    }
    for (int i = 11; i >= 0; --i) {
      works[i].wait_host();
      int total = 0;
      for (int rank = 0; rank < world.size(); ++rank)
        total += i % 2 == 0 || rank % 2 == world.rank() % 2 ? rank + 1 : 0;
      EXPECT_TRUE(holds<float>(tensors[i], [=](int64_t j) { return static_cast<float>(j % 100 * total); })) << i;
    }
  };
  for (const int ranks : {2, 3, 5}) run_gloo_ranks(ranks, body, {.sums = ReductionOrder::Engine});
}

// With values that give other bits than the tree.
TEST(EngineSums, of_narrow_types_keep_the_order_of_the_tree) {
  run_gloo_ranks(3,
                 [](Communicator& world) {
                   const at::Tensor narrow = empty<c10::BFloat16>(100000);
                   fill<c10::BFloat16>(narrow, [&](int64_t i) { return value<c10::BFloat16>(2, world.rank(), i); });
                   world.all_reduce(narrow, ReduceOp::Sum).wait_host();
                   EXPECT_TRUE(holds<c10::BFloat16>(
                       narrow, [](int64_t i) { return expected_sum<c10::BFloat16>(2, 3, i, ReduceOp::Sum); }));
                 },
                 {.sums = ReductionOrder::Engine});
}

TEST(EngineSums, that_are_measured_are_sums) {
  run_gloo_ranks(3,
                 [](Communicator& world) {
                   for (const int elements : {100, 10000, 1000000}) {
                     const at::Tensor ranks = empty<float>(elements).fill_(world.rank() + 1.0);
                     world.all_reduce(ranks, ReduceOp::Sum).wait_host();
                     EXPECT_TRUE(holds<float>(ranks, [](int64_t) { return 6.0F; })) << elements;
                   }
                 },
                 {.sums = ReductionOrder::Measured});
}

}  // namespace
}  // namespace braid::comm::tests::gloo_test
