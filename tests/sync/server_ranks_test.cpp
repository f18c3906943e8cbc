// Parameter servers that are ranks of their own, with workers of two parts of a model.
#include "braid/sync/server/server_ranks.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/sync/server_world.h"

namespace braid::sync::server::server_ranks_test {
namespace {

constexpr int kNumServers = 2, kNumWorkers = 3;

// Ranks 0 and 2 are the workers of one part, rank 1 that of the other.
ServedPart part_of_rank(int rank) {
  ServedPart part;
  part.first_worker = rank % 2;
  part.num_workers = rank % 2 == 0 ? 2 : 1;
  part.num_elements = rank % 2 == 0 ? 1000 : 300;
  return part;
}

SyncSpec bulk_synchronous() {
  SyncSpec sync;
  sync.replication = ReplicationKind::ParameterServer;
  sync.servers = kNumServers;
  sync.servers_on = ServersOn::Own;
  return sync;
}

OptimizerSpec plain_descent() {
  OptimizerSpec optimizer;
  optimizer.kind = OptimizerKind::Sgd;
  optimizer.momentum = optimizer.weight_decay = 0;
  return optimizer;
}

at::Tensor filled(const ServedPart& part, double value) { return at::full({part.num_elements}, value, at::kFloat); }

// Makes two steps, whose gradients are 1 on rank 0 and 3 on the others.
void train(Communicator& world) {
  const int rank = world.rank();
  const ServedPart part = part_of_rank(rank);
  const at::Tensor initial = filled(part, rank / 2 == 0 ? 10 + rank : 0);  // rank 2 is not the first of its part
  const auto channel = reach_servers(bulk_synchronous(), part, rank / 2, initial, world);
  const KeyShares shares({part.type, part.num_elements, {}}, kNumServers);
  ServerClient client(shares, optim::element_rule(plain_descent()), {}, *channel);
  KeyedTensors values{at::zeros({part.num_elements}, at::kFloat), {}};
  client.pull(values);
  EXPECT_TRUE(at::equal(values.dense, filled(part, 10 + rank % 2)));
  for (int step = 0; step < 2; ++step) {
    client.push({filled(part, rank == 0 ? 1 : 3), {}}, 0.5);
    client.pull(values);
  }
  EXPECT_TRUE(at::equal(values.dense, filled(part, rank % 2 == 0 ? 10 - 2 : 11 - 3)));
  EXPECT_EQ(client.report().server_bytes.size(), 2u);
  EXPECT_EQ(client.take_request(), RunRequest::Stop);
  EXPECT_EQ(client.take_request(), RunRequest::GoOn);
  client.leave();
}

TEST(ServerRanks, ServeEveryPartFromTheParametersOfItsFirstWorker) {
  run_ranks(kNumWorkers + kNumServers, [](Communicator& world) {
    if (world.rank() < kNumWorkers) return train(world);
    const ServerRankCalls calls{
        .request = [&] { return world.rank() == kNumWorkers ? RunRequest::Stop : RunRequest::Save; }};
    serve(bulk_synchronous(), plain_descent(), calls, world);
  });
}

TEST(ServerRanks, EndWithTheWorldWhenAWorkerFails) {
  const auto run = [](Communicator& world) {
    if (world.rank() >= kNumWorkers) return serve(bulk_synchronous(), plain_descent(), {}, world);
    const ServedPart part = part_of_rank(world.rank());
    const auto channel = reach_servers(bulk_synchronous(), part, world.rank() / 2, filled(part, 0), world);
    if (world.rank() == 1) throw RunError("out of paper");
    world.barrier().wait_host();
  };
  EXPECT_THROW(run_ranks(kNumWorkers + kNumServers, run), RunError);
}

}  // namespace
}  // namespace braid::sync::server::server_ranks_test
