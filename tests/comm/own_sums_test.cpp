// All-reduces of a transport itself, and the measurement that chooses them.
#include "braid/comm/transport/own_sums.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "braid/base/clock.h"
#include "tests/comm/memory_wire.h"

namespace braid::comm::tests::own_sums_test {
namespace {

constexpr auto kInstant = std::chrono::milliseconds(0);

// All-reduces that leave the tensor as it is. Each lasts `slowness` times what has passed since the one before. A
// measured all-reduce by messages lies in that time, so with 2 and more they are slower on every host at any load.
class PretendedSums final : public transport::OwnAllReduce {
 public:
  PretendedSums(int slowness, std::atomic<int>& num_sums) : slowness_(slowness), num_sums_(num_sums) {}
  ~PretendedSums() override { stop(); }
  void add(const at::Tensor&, std::function<void()> done) override {
    threads_.emplace_back([this, duration = slowness_ * (now_seconds() - end_), done = std::move(done)] {
      if (duration > 0) std::this_thread::sleep_for(std::chrono::duration<double>(duration));
      ++num_sums_;
      end_ = now_seconds();
      done();
    });
  }
  void stop() override {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  const int slowness_;
  std::atomic<int>& num_sums_;
  std::atomic<double> end_ = now_seconds();  // of the one before
  std::vector<std::thread> threads_;
};

class PretendingTransport final : public MemoryTransport {
 public:
  struct Sums {
    int slowness;
    std::chrono::milliseconds of_message;  // of sending one
    std::atomic<int> count{0};
  };
  PretendingTransport(Medium& medium, int rank, int size, Sums& sums)
      : MemoryTransport(medium, rank, size), sums_(sums) {}

  void send(const transport::MessagePtr& message) override {
    if (sums_.of_message > kInstant) std::this_thread::sleep_for(sums_.of_message);
    MemoryTransport::send(message);
  }
  bool has_own_sum(const Call& call) const override { return call.type == at::kFloat && call.op == ReduceOp::Sum; }
  std::unique_ptr<transport::OwnAllReduce> own_all_reduce(std::shared_ptr<const transport::Group>,
                                                          std::function<void()>) override {
    return std::make_unique<PretendedSums>(sums_.slowness, sums_.count);
  }

 private:
  Sums& sums_;
};

// The transport's own all-reduces of `num_ranks` ranks together.
struct Counted {
  int at_start = 0;  // before the world was made
  int of_large = 0;  // all-reduces of 8 MiB on the world and on its halves
};

Counted counted(int num_ranks, ReductionOrder order, int slowness, std::chrono::milliseconds of_message = kInstant) {
  Medium medium(num_ranks);
  OneFailureState failures;
  PretendingTransport::Sums sums{.slowness = slowness, .of_message = of_message};
  std::atomic<int> at_start{0};
  const auto make_world = [&](int rank, Queue& queue) {
    return world_over(std::make_unique<PretendingTransport>(medium, rank, num_ranks, sums),
                      {.size = num_ranks, .sums = order}, rank, failures, queue);
  };
  run_ranks_on(num_ranks, failures, make_world, [&](Communicator& world) {
    world.barrier().wait_host();
    if (world.rank() == 0) at_start = sums.count.load();
    world.barrier().wait_host();
    const auto half = world.split(world.rank() % 2, 0, "half");
    for (Communicator* const group : {&world, half.get()}) {
      group->all_reduce(at::zeros({2 << 20}, at::kFloat), ReduceOp::Sum).wait_host();
    }
  });
  return {at_start, sums.count - at_start};
}

TEST(OwnSums, that_are_slower_are_not_taken) {
  const Counted sums = counted(4, ReductionOrder::Measured, 3);
  EXPECT_EQ(sums.at_start, 2 * 4 * 4) << "one size of pairs and one of the world: four times on each rank";
  EXPECT_EQ(sums.of_large, 0);
}

// Returns how many of `wanted` large sums are the transport's own where sending a message takes long. On a loaded host
// own sums take long as well, and messages need to be slower still.
int taken(int num_ranks, int wanted) {
  for (std::chrono::milliseconds of_message(4);; of_message *= 4) {
    const int of_large = counted(num_ranks, ReductionOrder::Measured, 0, of_message).of_large;
    if (of_large == wanted || of_message.count() > 60) return of_large;
  }
}

TEST(OwnSums, that_are_faster_are_taken_in_groups_of_all_sizes) {
  EXPECT_EQ(taken(2, 2), 2) << "a group of one has no sums";
  EXPECT_EQ(taken(4, 2 * 4), 2 * 4);
  EXPECT_EQ(taken(5, 2 * 5), 2 * 5);
}

TEST(OwnSums, are_neither_measured_nor_taken_in_the_order_of_the_tree) {
  const Counted sums = counted(4, ReductionOrder::Tree, 0);
  EXPECT_EQ(sums.at_start, 0);
  EXPECT_EQ(sums.of_large, 0);
}

TEST(OwnSums, are_not_measured_in_a_world_of_one) { EXPECT_EQ(counted(1, ReductionOrder::Measured, 0).at_start, 0); }

TEST(OwnSums, sizes_count_what_a_rank_receives) {
  const transport::OwnSumSizes sizes{.of_two = 1000, .of_more = 300};
  EXPECT_FALSE(sizes.include(999, 2));
  EXPECT_TRUE(sizes.include(1000, 2));
  EXPECT_FALSE(sizes.include(99, 4));
  EXPECT_TRUE(sizes.include(100, 4));
  EXPECT_FALSE(sizes.include(100000, 1));
  EXPECT_FALSE((transport::OwnSumSizes{.of_two = 0, .of_more = 0}.include(0, 2)));
  EXPECT_FALSE(transport::OwnSumSizes().include(int64_t{1} << 40, 3));
}

}  // namespace
}  // namespace braid::comm::tests::own_sums_test
