// How worlds of ranks on their own fail, over shared memory or over Gloo: one suite, instantiated for each backend. A
// backend is a type with
//   static void run(int num_ranks, const std::function<void(Communicator&)>& body);
//   static constexpr int64_t kMore;  // floats that it does not hold on their way
//   static constexpr bool kBuffersSends;  // only where a rank that has left still takes the messages of its peers
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "braid/base/errors.h"
#include "tests/comm/values.h"
#include "tests/support/shared_array.h"

namespace braid::comm::tests {

inline at::Tensor zeros(int64_t count) { return empty<float>(count).zero_(); }

inline Work message(Communicator& group, P2p::Kind kind, int peer, const at::Tensor& tensor, int tag = 9) {
  const P2p one{kind, tensor, peer, tag};
  return group.batch({&one, 1});
}

// Returns what it throws, or fails an expectation.
inline CommFailure failure_in(const std::function<void()>& run) {
  try {
    run();
  } catch (const CommError& error) {
    return error.failure();
  }
  ADD_FAILURE() << "no CommError";
  return {};
}

template <class Backend>
CommFailure failure_on(int num_ranks, const std::function<void(Communicator&)>& body) {
  return failure_in([&] { Backend::run(num_ranks, body); });
}

template <class Backend>
class Failures : public testing::Test {};
TYPED_TEST_SUITE_P(Failures);

TYPED_TEST_P(Failures, messages_of_different_size_or_type_whoever_comes_first) {
  for (const int first : {0, 1}) {
    for (const int64_t count : {8, 100000}) {
      const CommFailure failure = failure_on<TypeParam>(2, [=](Communicator& world) {
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

TYPED_TEST_P(Failures, tensors_that_make_no_sense) {
  const CommFailure failure = failure_on<TypeParam>(2, [](Communicator& world) {
    if (world.rank() == 1) world.all_reduce(zeros(12).view({3, 4}).t(), ReduceOp::Sum);
    world.barrier().wait_host();
  });
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.why, "all_reduce: the tensor is not contiguous");
}

TYPED_TEST_P(Failures, a_rank_that_leaves_early_is_named_at_once) {
  const CommFailure collective = failure_on<TypeParam>(3, [](Communicator& world) {
    if (world.rank() != 2) world.all_reduce(zeros(10), ReduceOp::Sum).wait_host();
  });
  EXPECT_EQ(collective.rank, 2);
  EXPECT_EQ(collective.why, "has ended without joining all_reduce #0 on world");
  const CommFailure received = failure_on<TypeParam>(2, [](Communicator& world) {
    if (world.rank() == 1) message(world, P2p::Kind::Recv, 0, zeros(2)).wait_host();
  });
  EXPECT_EQ(received.why, "has ended without joining transfer 0 -> 1 tag 9 on world in batch #0");
  if constexpr (requires { TypeParam::kBuffersSends; }) return;
  const CommFailure sent = failure_on<TypeParam>(2, [](Communicator& world) {
    if (world.rank() == 0) message(world, P2p::Kind::Send, 1, zeros(10 << 20)).wait_host();
  });
  EXPECT_EQ(sent.rank, 1);
  EXPECT_EQ(sent.why, "has ended without joining transfer 0 -> 1 tag 9 on world in batch #0");
}

// The rank that left has to carry on.
TYPED_TEST_P(Failures, what_an_ended_rank_issued_still_completes) {
  constexpr int64_t kCount = TypeParam::kMore;
  const auto body = [](Communicator& world) {
    const at::Tensor sum = zeros(kCount).fill_(world.rank() + 1), sent = zeros(kCount).fill_(7);
    Work reduced = world.all_reduce(sum, ReduceOp::Sum);
    if (world.rank() == 2) {
      message(world, P2p::Kind::Send, 0, sent);
      return;
    }
    reduced.wait_host();
    EXPECT_EQ(sum.const_data_ptr<float>()[kCount - 1], 6);
    if (world.rank() == 1) return;
    message(world, P2p::Kind::Recv, 2, sent.zero_()).wait_host();
    EXPECT_EQ(sent.const_data_ptr<float>()[kCount - 1], 7);
  };
  TypeParam::run(3, body);
}

TYPED_TEST_P(Failures, a_receive_that_no_rank_waits_for_takes_its_message) {
  TypeParam::run(2, [](Communicator& world) {
    const auto kind = world.rank() == 0 ? P2p::Kind::Send : P2p::Kind::Recv;
    Work work = message(world, kind, 1 - world.rank(), zeros(TypeParam::kMore));
    if (world.rank() == 0) work.wait_host();
  });
}

// Nobody waits for it, and the ranks end all the same.
TYPED_TEST_P(Failures, a_long_message_that_no_rank_receives_is_dropped_at_the_end) {
  TypeParam::run(2, [](Communicator& world) {
    if (world.rank() == 0) message(world, P2p::Kind::Send, 1, zeros(TypeParam::kMore));
  });
}

TYPED_TEST_P(Failures, an_abort_poisons_every_group_of_the_world_and_stays) {
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
  EXPECT_EQ(failure_on<TypeParam>(4, body).why, "out of paper");
  EXPECT_EQ(told[0], 12);
}

REGISTER_TYPED_TEST_SUITE_P(Failures, messages_of_different_size_or_type_whoever_comes_first,
                            tensors_that_make_no_sense, a_rank_that_leaves_early_is_named_at_once,
                            what_an_ended_rank_issued_still_completes,
                            a_receive_that_no_rank_waits_for_takes_its_message,
                            a_long_message_that_no_rank_receives_is_dropped_at_the_end,
                            an_abort_poisons_every_group_of_the_world_and_stays);

}  // namespace braid::comm::tests
