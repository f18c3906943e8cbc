// Gradients that a worker adds up before it pushes: which steps a push is of, and that none is left behind.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/sync/server_world.h"

namespace braid::sync::server::tests::server_intervals_test {
namespace {

constexpr int64_t kRow = 5, kWidth = 2;

// Two workers on one thread, of servers where nobody waits. The first adds up three steps, the other looks on.
class HeldBack : public testing::Test {
 protected:
  const KeyShape flat_and_table_{at::kFloat, 2000, {{10, kWidth}}};
  LocalServers servers_{flat_and_table_,
                        {.num_servers = 2, .server = {.consistency = Consistency::Asp, .num_workers = 2}}};
  const std::unique_ptr<Channel> channels_[2] = {servers_.worker_channel(0), servers_.worker_channel(1)};
  ServerClient one_{servers_.shares(), {}, {.consistency = Consistency::Asp, .push_every = 3}, *channels_[0]};
  ServerClient other_{servers_.shares(), {}, {.consistency = Consistency::Asp}, *channels_[1]};
  int step_ = 0;

  // Gradients of one, with the number of the step as its rate.
  void steps(int count) {
    const KeyedTensors ones{at::full({2000}, 1.0, at::kFloat),
                            {{at::full({1}, kRow, at::kLong), at::full({1, kWidth}, 1.0, at::kFloat)}}};
    for (int i = 0; i < count; ++i) one_.push(ones, ++step_);
  }
  // Returns what the servers have subtracted from every element and from the row. A pull is answered after own pushes.
  double moved(ServerClient& client) const {
    KeyedTensors read{at::full({2000}, 0.0, at::kFloat), {{at::full({1}, kRow, at::kLong), {}}}};
    client.pull(read, ServerClient::Freshness::Newest);
    const auto dense = doubles(read.dense);
    EXPECT_EQ(dense, std::vector<double>(2000, dense[0]));
    EXPECT_EQ(doubles(read.rows[0].values), std::vector<double>(kWidth, dense[0]));
    return -dense[0];
  }
};

TEST_F(HeldBack, IsPushedWhenAskedWithTheRateOfItsLastStep) {
  steps(4);
  EXPECT_EQ(moved(one_), 3 * 3);
  one_.push_rest();
  EXPECT_EQ(moved(one_), 3 * 3 + 4);
  one_.push_rest();  // nothing
  EXPECT_EQ(one_.clock(), 2);
  steps(2);
  EXPECT_EQ(moved(one_), 3 * 3 + 4);
  steps(1);  // the third since
  EXPECT_EQ(moved(one_), 3 * 3 + 4 + 3 * 7);
}

TEST_F(HeldBack, IsForgottenWhenAsked) {
  steps(2);
  one_.drop_rest();
  one_.push_rest();
  EXPECT_EQ(moved(one_), 0);
  steps(3);
  EXPECT_EQ(moved(one_), 3 * 5);
}

TEST_F(HeldBack, IsPushedWhenTheWorkerLeaves) {
  steps(2);
  one_.leave();
  EXPECT_EQ(moved(other_), 2 * 2);
}

}  // namespace
}  // namespace braid::sync::server::tests::server_intervals_test
