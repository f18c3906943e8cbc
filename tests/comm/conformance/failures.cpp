// How worlds of ranks on their own fail.
#include "tests/comm/failures.h"

#include <thread>

#include "braid/base/errors.h"
#include "tests/comm/conformance.h"
#include "tests/support/shared_array.h"

namespace braid::comm::tests::failures {
namespace {

TEST_P(Failures, messages_of_different_size_or_type_whoever_comes_first) {
  for (const int first : {0, 1}) {
    for (const int64_t count : {8, 100000}) {
      const CommFailure failure = failure_on(GetParam(), 2, [=](Communicator& world) {
        const auto kind = world.rank() == 0 ? P2p::Kind::Send : P2p::Kind::Recv;
        if (world.rank() != first) world.barrier().wait_host();
        Work work = message(world, kind, 1 - world.rank(), world.rank() == 0 ? zeros(count) : empty<double>(count));
        if (world.rank() == first) world.barrier().wait_host();
        work.wait_host();
        world.barrier().wait_host();
      });
      EXPECT_EQ(failure.why, cat("receives Double[", count, "] in batch #0 where rank 0 sends Float[", count,
                                 "] in batch #0 on world"));
    }
  }
}

TEST_P(Failures, tensors_that_make_no_sense) {
  const CommFailure failure = failure_on(GetParam(), 2, [](Communicator& world) {
    if (world.rank() == 1) world.all_reduce(zeros(12).view({3, 4}).t(), ReduceOp::Sum);
    world.barrier().wait_host();
  });
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.why, "all_reduce: the tensor is not contiguous");
}

TEST_P(Failures, a_rank_that_leaves_early_is_named_at_once) {
  const CommFailure collective = failure_on(GetParam(), 3, [](Communicator& world) {
    if (world.rank() != 2) world.all_reduce(zeros(10), ReduceOp::Sum).wait_host();
  });
  EXPECT_EQ(collective.rank, 2);
  EXPECT_EQ(collective.why, "has ended without joining all_reduce #0 on world");
  const CommFailure received = failure_on(GetParam(), 2, [](Communicator& world) {
    if (world.rank() == 1) message(world, P2p::Kind::Recv, 0, zeros(2)).wait_host();
  });
  EXPECT_EQ(received.why, "has ended without joining transfer 0 -> 1 tag 9 on world in batch #0");
  if (GetParam().buffers_sends) return;
  const CommFailure sent = failure_on(GetParam(), 2, [](Communicator& world) {
    if (world.rank() == 0) message(world, P2p::Kind::Send, 1, zeros(10 << 20)).wait_host();
  });
  EXPECT_EQ(sent.rank, 1);
  EXPECT_EQ(sent.why, "has ended without joining transfer 0 -> 1 tag 9 on world in batch #0");
}

// The rank that left has to carry on.
TEST_P(Failures, what_an_ended_rank_issued_still_completes) {
  const int64_t count = GetParam().more;
  const auto body = [count](Communicator& world) {
    const at::Tensor sum = zeros(count).fill_(world.rank() + 1), sent = zeros(count).fill_(7);
    Work reduced = world.all_reduce(sum, ReduceOp::Sum);
    if (world.rank() == 2) {
      message(world, P2p::Kind::Send, 0, sent);
      return;
    }
    reduced.wait_host();
    EXPECT_EQ(sum.const_data_ptr<float>()[count - 1], 6);
    if (world.rank() == 1) return;
    message(world, P2p::Kind::Recv, 2, sent.zero_()).wait_host();
    EXPECT_EQ(sent.const_data_ptr<float>()[count - 1], 7);
  };
  GetParam().run(3, body);
}

TEST_P(Failures, a_receive_that_no_rank_waits_for_takes_its_message) {
  GetParam().run(2, [](Communicator& world) {
    const auto kind = world.rank() == 0 ? P2p::Kind::Send : P2p::Kind::Recv;
    Work work = message(world, kind, 1 - world.rank(), zeros(GetParam().more));
    if (world.rank() == 0) work.wait_host();
  });
}

// Nobody waits for it, and the ranks end all the same.
TEST_P(Failures, a_long_message_that_no_rank_receives_is_dropped_at_the_end) {
  GetParam().run(2, [](Communicator& world) {
    if (world.rank() == 0) message(world, P2p::Kind::Send, 1, zeros(GetParam().more));
  });
}

TEST_P(Failures, an_abort_poisons_every_group_of_the_world_and_stays) {
  SharedArray<int> told, come;
  const auto body = [&](Communicator& world) {
    auto pair = world.split(world.rank() / 2, 0, "pair");
    Work done_before = pair->barrier();
    done_before.wait_host();
    ++come[0];
    while (come[0] < 4) std::this_thread::yield();  // not the world's barrier, which fails
    if (world.rank() == 3) pair->abort("out of paper");
    for (int i = 0; i < 3; ++i) {
      try {
        for (;;) (world.rank() == 2 ? world : *pair).barrier().wait_host();
      } catch (const CommError& error) {
        EXPECT_EQ(error.failure().rank, 3);
        EXPECT_EQ(error.failure().why, "out of paper");
        ++told[0];
      }
    }
    EXPECT_THROW(done_before.wait_host(), CommError);
    EXPECT_TRUE(world.barrier().done());
    EXPECT_THROW(world.split(0, 0, "late"), CommError);
  };
  EXPECT_EQ(failure_on(GetParam(), 4, body).why, "out of paper");
  EXPECT_EQ(told[0], 12);
}

}  // namespace
}  // namespace braid::comm::tests::failures
