// Groups that span nodes: the same bits as on one node, and fewer bytes between nodes.
#include "braid/comm/transport/two_levels.h"

#include "tests/comm/collective_checks.h"
#include "tests/comm/failures.h"
#include "tests/comm/memory_wire.h"

namespace braid::comm::tests::two_levels_test {
namespace {

using transport::Group;
using transport::node_members;
using Placement = std::vector<int>;  // node of each rank

Group group_on(Placement nodes) {
  Group group{.id = 0, .name = "group", .world_ranks = {}, .rank = static_cast<int>(nodes.size()) - 1};
  group.nodes = std::move(nodes);
  return group;
}

TEST(NodeMembers, are_equally_many_on_several_nodes_and_two_at_least) {
  for (const Placement& nodes : {Placement{}, {0, 0, 0}, {0, 1, 2}, {0, 0, 1}, {0, 0, 1, 1, 2}}) {
    EXPECT_FALSE(node_members(group_on(nodes)));
  }
  const auto members = node_members(group_on({4, 2, 4, 2}));
  ASSERT_TRUE(members);
  EXPECT_EQ(members->at, (std::vector<std::vector<int>>{{0, 2}, {1, 3}}));
  EXPECT_EQ(members->node, 1);
  EXPECT_EQ(members->place, 1);
}

TEST(NodeMembers, keep_the_tree_where_each_node_is_a_subtree) {
  for (const Placement& nodes : {Placement{0, 0, 1, 1}, {3, 3, 1, 1, 2, 2}, {0, 0, 0, 0, 1, 1, 1, 1}}) {
    EXPECT_TRUE(node_members(group_on(nodes))->keep_tree);
  }
  for (const Placement& nodes : {Placement{0, 1, 0, 1}, {0, 0, 0, 1, 1, 1}, {0, 1, 1, 0}}) {
    EXPECT_FALSE(node_members(group_on(nodes))->keep_tree);
  }
}

void run_on(const Placement& nodes, const std::function<void(Communicator&)>& body) {
  const int num_ranks = static_cast<int>(nodes.size());
  Medium medium(num_ranks);
  run_wire_ranks(medium, {.size = num_ranks, .node_of_rank = nodes}, body);
}

// Parts, shares and the last of several rounds do not divide the tensors.
template <class T>
void check_collectives(Communicator& group) {
  for (const int64_t size : {20003, 150001}) {
    const Case a_case{size, 3, cat(" of ", c10::toString(type_of<T>()), "[", size, "]")};
    check_reduce_scatter<T>(group, a_case, ReduceOp::Sum, size == 20003 ? Alias::Yes : Alias::No);
    check_all_gather<T>(group, a_case, size == 20003 ? Alias::Yes : Alias::No);
    check_all_reduce<T>(group, a_case, ReduceOp::Max);
    const int64_t more_rounds = size * (kTsan ? 1 : 8);
    check_all_reduce<T>(group, {more_rounds, 4, a_case.text}, ReduceOp::Sum);
    group.queue().drain();
    if (kTsan) return;
  }
}

TEST(TwoLevels, give_the_bits_of_one) {
  for (const Placement& nodes : {Placement{0, 0, 1, 1}, {0, 0, 1, 1, 2, 2}, {0, 0, 0, 0, 1, 1, 1, 1}}) {
    run_on(nodes, check_collectives<float>);
    run_on(nodes, check_collectives<c10::BFloat16>);
  }
  run_on({0, 0, 1, 1}, check_collectives<double>);
  run_on({0, 0, 1, 1}, check_collectives<c10::Half>);
}

// Sums have one level there.
TEST(TwoLevels, nodes_that_are_no_subtrees_change_no_bit) {
  for (const Placement& nodes : {Placement{0, 1, 0, 1}, {0, 0, 0, 1, 1, 1}, {2, 0, 1, 1, 2, 0}}) {
    run_on(nodes, check_collectives<float>);
  }
}

// Returns the bytes that leave node 0 while `body` runs, as a multiple of `bytes`.
double share_that_leaves(const Placement& nodes, int64_t bytes, const std::function<void(Communicator&)>& body) {
  const int num_ranks = static_cast<int>(nodes.size());
  Medium medium(num_ranks);
  run_wire_ranks(medium, {.size = num_ranks, .node_of_rank = nodes}, body);
  int64_t moved = 0;
  for (int from = 0; from < num_ranks; ++from) {
    for (int to = 0; to < num_ranks; ++to) {
      if (nodes[from] == 0 && nodes[to] != 0) moved += medium.bytes_moved(from, to);
    }
  }
  return static_cast<double>(moved) / static_cast<double>(bytes);
}

// Each of 4 nodes sends 3/4 of a tensor to the nodes that sum it, and its own quarter of the sums to 3 nodes.
TEST(TwoLevels, send_between_nodes_what_one_rank_of_each_would) {
  constexpr int64_t kCount = 1 << 20;
  const Placement nodes = {0, 0, 1, 1, 2, 2, 3, 3};
  const auto all_reduce = [](Communicator& world) { world.all_reduce(zeros(kCount), ReduceOp::Sum).wait_host(); };
  const auto reduce_scatter = [](Communicator& world) {
    world.reduce_scatter(zeros(kCount / 8), zeros(kCount), ReduceOp::Sum).wait_host();
  };
  const auto all_gather = [](Communicator& world) { world.all_gather(zeros(kCount), zeros(kCount / 8)).wait_host(); };
  EXPECT_NEAR(share_that_leaves(nodes, 4 * kCount, all_reduce), 1.5, 0.01);
  EXPECT_NEAR(share_that_leaves(nodes, 4 * kCount, reduce_scatter), 0.75, 0.01);
  EXPECT_NEAR(share_that_leaves(nodes, 4 * kCount, all_gather), 0.75, 0.01);
}

CommFailure failure_on_two_nodes(const std::function<void(Communicator&)>& body) {
  return failure_in([&] { run_on({0, 0, 1, 1}, body); });
}

// Rank 0 sends rank 3 no part of a sum.
TEST(TwoLevels, a_rank_that_does_not_come_is_named) {
  const CommFailure failure = failure_on_two_nodes([](Communicator& world) {
    if (world.rank() == 3) return;
    world.all_reduce(zeros(1 << 20), ReduceOp::Sum).wait_host();
  });
  EXPECT_EQ(failure.rank, 3);
  EXPECT_EQ(failure.why, "has ended without joining all_reduce #0 on world");
}

// Rank 0 has the first deadline.
CommFailure failure_by_deadline(Medium& medium, const std::function<void(Communicator&)>& body) {
  OneFailureState failures;
  const auto make_world = [&](int rank, Queue& queue) {
    const RankOptions options{.rank = rank,
                              .size = 4,
                              .failures = &failures,
                              .deadline_seconds = rank == 0 ? 1.5 : 3,
                              .node_of_rank = {0, 0, 1, 1}};
    return transport::ProcessCommunicator::of_world(std::make_unique<MemoryTransport>(medium, rank, 4), options, queue);
  };
  return failure_in([&] { run_ranks_on(4, failures, make_world, body); });
}

TEST(TwoLevels, a_rank_that_is_late_is_named_once) {
  Medium medium(4);
  const CommFailure failure = failure_by_deadline(medium, [](Communicator& world) {
    if (world.rank() == 3) std::this_thread::sleep_for(std::chrono::seconds(4));
    world.reduce_scatter(zeros(1 << 18), zeros(1 << 20), ReduceOp::Sum).wait_host();
  });
  EXPECT_EQ(failure.rank, 3);
  EXPECT_NE(failure.why.find("(missing: rank 3)"), std::string::npos) << failure.why;
}

// Rank 0 waits for the sum of rank 2, which waits for rank 3.
TEST(TwoLevels, a_rank_that_hangs_in_a_collective_is_named) {
  Medium medium(4);
  const CommFailure failure = failure_by_deadline(medium, [&](Communicator& world) {
    world.barrier().wait_host();
    if (world.rank() == 3) medium.hold_payloads(3);
    world.all_reduce(zeros(1 << 20), ReduceOp::Sum).wait_host();
  });
  EXPECT_EQ(failure.rank, 3);
  EXPECT_EQ(failure.why.find("did not finish its part of all_reduce"), 0u) << failure.why;
}

TEST(TwoLevels, a_rank_with_another_tensor_is_named) {
  const CommFailure failure = failure_on_two_nodes([](Communicator& world) {
    world.all_reduce(zeros((1 << 20) + (world.rank() == 2 ? 1 : 0)), ReduceOp::Sum).wait_host();
  });
  EXPECT_NE(failure.why.find("Float[1048577]"), std::string::npos) << failure.why;
}

TEST(TwoLevels, what_an_ended_rank_issued_still_completes) {
  run_on({0, 0, 1, 1}, [](Communicator& world) {
    const at::Tensor sum = zeros(3 << 20).fill_(world.rank() + 1);
    Work reduced = world.all_reduce(sum, ReduceOp::Sum);
    if (world.rank() == 2) return;
    reduced.wait_host();
    EXPECT_TRUE(holds<float>(sum, [](int64_t) { return 10.0f; }));
  });
}

// Two groups of a world, whose ranks are on both nodes, at work at once.
TEST(TwoLevels, groups_of_a_world_have_nodes_of_their_own) {
  run_on({0, 0, 0, 0, 1, 1, 1, 1}, [](Communicator& world) {
    const auto group = world.split(world.rank() % 2, 0, "parity");
    check_collectives<float>(*group);
  });
}

}  // namespace
}  // namespace braid::comm::tests::two_levels_test
