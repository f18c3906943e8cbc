// Errors name the calls at fault, of every backend: a call that a rank leaves out, calls in another order, transfers
// that differ.
#include "braid/base/errors.h"
#include "braid/comm/op_name.h"
#include "tests/comm/conformance.h"
#include "tests/comm/failures.h"

namespace braid::comm::tests::named_calls {
namespace {

Work transfer_for(Communicator& group, std::string_view name, const at::Tensor& tensor) {
  const CallName calls(name);
  const P2p one{group.rank() == 0 ? P2p::Kind::Send : P2p::Kind::Recv, tensor, 1 - group.rank(), 4};
  return group.batch({&one, 1});
}

std::string sum_text(std::string_view name) { return cat("all_reduce(Float[8], sum) for ", name); }

// Either rank may notice it.
void expect_both_calls(const CommFailure& failure, std::string_view a, std::string_view b, std::string_view end) {
  const auto text = [&](std::string_view mine, std::string_view theirs) {
    const std::string why = failure.why;
    const std::string begin = cat("called ", sum_text(mine), " where rank ");
    return why.starts_with(begin) && why.ends_with(cat(" called ", sum_text(theirs), end));
  };
  EXPECT_TRUE(text(a, b) || text(b, a)) << failure.why;
}

TEST_P(NamedCalls, a_rank_that_leaves_out_a_call) {
  const CommFailure failure = failure_on(GetParam(), 3, [](Communicator& world) {
    for (const std::string_view op : {"first", "second", "third", "fourth"}) {
      if (world.rank() != 1 || op != "second") sum_for(world, op);
    }
  });
  expect_both_calls(failure, "second", "third", " (call #1 on world)");
  ASSERT_EQ(failure.calls.size(), 2u);
  EXPECT_EQ(failure.calls[0], cat("#0 ", sum_text("first")));
  EXPECT_EQ(failure.calls[1],
            cat("#1 ", sum_text(failure.why.find("called " + sum_text("second")) == 0 ? "second" : "third")));
}

TEST_P(NamedCalls, two_ranks_in_another_order) {
  const CommFailure failure = failure_on(GetParam(), 2, [](Communicator& world) {
    const auto half = world.split(0, world.rank(), "half");
    sum_for(*half, "both");
    sum_for(*half, world.rank() == 0 ? "blocks.0.mlp.up.weight" : "blocks.0.mlp.down.weight");
    sum_for(*half, world.rank() == 0 ? "blocks.0.mlp.down.weight" : "blocks.0.mlp.up.weight");
  });
  expect_both_calls(failure, "blocks.0.mlp.up.weight", "blocks.0.mlp.down.weight", " (call #1 on half)");
}

TEST_P(NamedCalls, a_rank_that_ends_before_the_last_call) {
  const CommFailure failure = failure_on(GetParam(), 3, [](Communicator& world) {
    sum_for(world, "first");
    if (world.rank() != 1) sum_for(world, "second");
  });
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.why, cat("has ended without joining all_reduce #1 on world for second; the last call of rank 1 "
                             "there is #0 ",
                             sum_text("first")));
}

TEST_P(NamedCalls, the_last_64_calls_of_the_rank_are_in_the_error) {
  const CommFailure failure = failure_on(GetParam(), 2, [](Communicator& world) {
    for (int call = 0; call < 70; ++call) sum_for(world, cat("op ", call));
    sum_for(world, world.rank() == 0 ? "odd" : "even");
  });
  ASSERT_EQ(failure.calls.size(), 64u);
  for (int call = 7; call < 70; ++call) {
    EXPECT_EQ(failure.calls[static_cast<size_t>(call - 7)], cat("#", call, " ", sum_text(cat("op ", call))));
  }
  EXPECT_TRUE(failure.calls[63] == cat("#70 ", sum_text("odd")) || failure.calls[63] == cat("#70 ", sum_text("even")))
      << failure.calls[63];
  EXPECT_NE(std::string(CommError(failure).what()).find(failure.calls[63]), std::string::npos);
}

TEST_P(NamedCalls, transfers_that_differ) {
  const CommFailure failure = failure_on(GetParam(), 2, [](Communicator& world) {
    const bool sends = world.rank() == 0;
    if (sends) world.batch({});
    transfer_for(world, "activations", empty<float>(2).zero_()).wait_host();
    transfer_for(world, sends ? "activations" : "gradients", empty<float>(sends ? 8 : 9).zero_()).wait_host();
    world.barrier().wait_host();
  });
  const std::string sent = "sends Float[8] for activations in batch #2";
  const std::string received = "receives Float[9] for gradients in batch #1";
  EXPECT_EQ(failure.why, failure.rank == 1 ? cat(received, " where rank 0 ", sent, " on world")
                                           : cat(sent, " where rank 1 ", received, " on world"));
}

TEST_P(NamedCalls, names_are_scoped_and_cut) {
  const CommFailure failure = failure_on(GetParam(), 2, [](Communicator& world) {
    const CallName outer("outer");
    {
      const CallName inner(std::string(100, 'x'));
      EXPECT_EQ(CallName::current().text(), std::string(OpName::kBytes, 'x'));
      EXPECT_EQ(CallName::current().backward().text(), std::string(54, 'x') + ", backward");
      world.barrier().wait_host();
    }
    world.broadcast(empty<float>(3).zero_(), world.rank()).wait_host();
  });
  EXPECT_NE(failure.why.find("called broadcast(Float[3], root 0) for outer"), std::string::npos) << failure.why;
  EXPECT_NE(failure.why.find("called broadcast(Float[3], root 1) for outer"), std::string::npos) << failure.why;
  EXPECT_EQ(failure.calls.front(), cat("#0 barrier() for ", std::string(OpName::kBytes, 'x')));
}

}  // namespace
}  // namespace braid::comm::tests::named_calls
