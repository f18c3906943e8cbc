// Ways to fail: broken promises, aborts and ends at any moment. Nobody hangs and everybody learns the same first
// failure.
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <random>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/comm/values.h"
#include "tests/support/delayed_queue.h"

namespace braid::comm::tests::failure_test {
namespace {

// Returns what run_ranks throws, or fails an expectation.
CommFailure failure_of(int num_ranks, const std::function<void(Communicator&)>& body) {
  try {
    run_ranks(num_ranks, body, {.deadline_seconds = 60});
  } catch (const CommError& error) {
    return error.failure();
  }
  ADD_FAILURE() << "no CommError";
  return {};
}

at::Tensor floats(int64_t count) { return empty<float>(count).zero_(); }

TEST(Mismatch, names_both_ranks_and_what_they_called) {
  struct {
    std::function<Work(Communicator&)> call;
    const char* text;
  } odd[] = {
      {[](Communicator& g) { return g.all_reduce(floats(11), ReduceOp::Sum); }, "all_reduce(Float[11], sum)"},
      {[](Communicator& g) { return g.all_reduce(floats(10), ReduceOp::Max); }, "all_reduce(Float[10], max)"},
      {[](Communicator& g) { return g.all_reduce(floats(10).to(at::kDouble), ReduceOp::Sum); },
       "all_reduce(Double[10], sum)"},
      {[](Communicator& g) { return g.broadcast(floats(10), 1); }, "broadcast(Float[10], root 1)"},
      {[](Communicator& g) { return g.all_gather(floats(30), floats(10)); }, "all_gather(chunks of Float[10])"},
      {[](Communicator& g) { return g.barrier(); }, "barrier()"},
  };
  for (const auto& [call, text] : odd) {
    CommFailure failure = failure_of(3, [&](Communicator& world) {
      world.barrier().wait_host();
      Work work = world.rank() == 1 ? call(world) : world.all_reduce(floats(10), ReduceOp::Sum);
      work.wait_host();
    });
    std::string usual = "all_reduce(Float[10], sum)";
    std::string by_odd = cat("called ", text, " where rank ");
    const std::string end = " (call #1 on world)";
    std::string by_usual = cat("called ", usual, " where rank 1 called ", text, end);
    EXPECT_TRUE(failure.rank == 1 ? failure.why.starts_with(by_odd) && failure.why.ends_with(cat("called ", usual, end))
                                  : failure.why == by_usual)
        << failure.rank << ": " << failure.why;
  }
}

TEST(Mismatch, messages_of_different_size_or_type) {
  for (auto type : {at::kFloat, at::kDouble}) {
    CommFailure failure = failure_of(2, [&](Communicator& world) {
      at::Tensor tensor = world.rank() == 0 ? floats(8) : at::empty({type == at::kFloat ? 9 : 8}, type);
      P2p one{world.rank() == 0 ? P2p::Kind::Send : P2p::Kind::Recv, tensor, 1 - world.rank(), 4};
      world.batch({&one, 1}).wait_host();
    });
    const char* theirs = type == at::kFloat ? "Float[9]" : "Double[8]";
    EXPECT_EQ(failure.why,
              failure.rank == 1
                  ? cat("receives ", theirs, " in batch #0 where rank 0 sends Float[8] in batch #0 on world")
                  : cat("sends Float[8] in batch #0 where rank 1 receives ", theirs, " in batch #0 on world"));
  }
}

TEST(Refused, tensors_and_ranks_that_make_no_sense) {
  struct {
    std::function<void(Communicator&)> call;
    const char* why;
  } wrong[] = {
      {[](Communicator& g) {
         g.all_reduce(floats(12).view({3, 4}).t(), ReduceOp::Sum);
       },
       "all_reduce: the tensor is not contiguous"},
      {[](Communicator& g) { g.all_reduce({}, ReduceOp::Sum); }, "all_reduce: the tensor is undefined"},
      {[](Communicator& g) { g.all_reduce(floats(3).to(at::kByte), ReduceOp::Sum); },
       "all_reduce: cannot combine Byte"},
      {[](Communicator& g) { g.reduce_scatter(floats(3), floats(5), ReduceOp::Sum); },
       "reduce_scatter: 5 elements are not 2 chunks of 3"},
      {[](Communicator& g) { g.all_gather(floats(6), floats(3).to(at::kDouble)); },
       "all_gather: `out` and `in` differ in type"},
      {[](Communicator& g) { g.all_to_all(floats(3), floats(3)); }, "all_to_all: 3 elements are not 2 equal chunks"},
      {[](Communicator& g) {
         const at::Tensor x = floats(6);
         g.all_gather(x, x.narrow(0, 1, 3));
       },
       "all_gather: `out` and `in` share memory that is not chunk 1"},
      {[](Communicator& g) { g.broadcast(floats(3), 2); }, "broadcast: root 2 is not a rank of a group of 2"},
      {[](Communicator& g) {
         P2p one{P2p::Kind::Send, floats(1), -1, 0};
         g.batch({&one, 1});
       },
       "batch: peer -1 is not a rank of a group of 2"},
  };
  for (const auto& [call, why] : wrong) {
    CommFailure failure = failure_of(2, [&](Communicator& world) {
      if (world.rank() == 1) call(world);
      world.barrier().wait_host();
    });
    EXPECT_EQ(failure.rank, 1) << why;
    EXPECT_EQ(failure.why, why);
  }
}

TEST(Abort, poisons_every_group_of_the_world_and_stays) {
  std::atomic<int> told = 0;
  std::barrier all(6);
  EXPECT_THROW(run_ranks(6,
                         [&](Communicator& world) {
                           auto pair = world.split(world.rank() / 2, 0, "pair");
                           auto alone = pair->split(pair->rank(), 0, "alone");
                           Work done_before = pair->barrier();
                           done_before.wait_host();
                           all.arrive_and_wait();
                           if (world.rank() == 5) alone->abort("out of paper");
                           for (int i = 0; i < 3; ++i) {
                             try {
                               Work work = world.rank() == 4 ? world.barrier() : pair->barrier();
                               while (world.rank() < 4) {  // these pairs are whole; they stop because the world does
                                 work.wait_host();
                                 work = pair->barrier();
                               }
                               work.wait_host();
                             } catch (const CommError& error) {
                               EXPECT_EQ(error.failure().rank, 5);
                               EXPECT_EQ(error.failure().why, "out of paper");
                               ++told;
                             }
                           }
                           EXPECT_THROW(done_before.wait_host(), CommError);
                           EXPECT_THROW(world.split(0, 0, "late"), CommError);
                         }),
               CommError);
  EXPECT_EQ(told, 18);
}

// After its wait has thrown, a rank may do what it likes with its tensors.
TEST(Abort, no_peer_touches_a_tensor_whose_wait_has_thrown) {
  for (int seed = 0; seed < 40; ++seed) {
    std::barrier all(3);  // not the world's, which fails
    auto body = [&](Communicator& world) {
      std::mt19937 draw(seed * 3 + world.rank());
      std::vector<float> mine(kTsan ? 100000 : 1000000, 1.0f);
      at::Tensor tensor = at::from_blob(mine.data(), {static_cast<int64_t>(mine.size())}, at::kFloat);
      all.arrive_and_wait();
      Work work = world.all_reduce(tensor, ReduceOp::Sum);
      for (unsigned i = draw() % 20000; world.rank() == 2 && i > 0; --i) (void)work.done();
      if (world.rank() == 2) world.abort("now");
      try {
        for (;;) {
          work.wait_host();
          world.barrier().wait_host();
        }
      } catch (const CommError&) {
      }
      std::fill(mine.begin(), mine.end(), 7.0f);
      all.arrive_and_wait();
      EXPECT_EQ(std::count(mine.begin(), mine.end(), 7.0f), static_cast<int64_t>(mine.size()));
    };
    EXPECT_THROW(run_ranks(3, body), CommError);
  }
}

TEST(Ends, a_work_may_outlive_its_world) {
  Work done, never;
  EXPECT_NO_THROW(run_ranks(2, [&](Communicator& world) {
    at::Tensor tensor = floats(10);
    Work work = world.all_reduce(tensor, ReduceOp::Sum);
    work.wait_host();
    if (world.rank() == 0) {
      done = work;
      never = world.barrier();
    }
  }));
  EXPECT_TRUE(done.done());
  done.wait_host();
  EXPECT_FALSE(never.done());
  EXPECT_THROW(never.wait_host(), CommError);
}

TEST(Ends, a_receiver_learns_that_the_sender_is_gone) {
  for (int culprit : {0, 1}) {
    CommFailure failure = failure_of(2, [&](Communicator& world) {
      if (world.rank() == culprit) return;
      P2p one{culprit == 0 ? P2p::Kind::Recv : P2p::Kind::Send, floats(2), culprit, 9};
      world.batch({&one, 1}).wait_host();
    });
    EXPECT_EQ(failure.rank, culprit);
    EXPECT_EQ(failure.why, "has ended without joining transfer 0 -> 1 tag 9 on world in batch #0");
  }
}

// A rank fails in one of four ways at a random place of a random sequence of calls.
struct Accident {
  enum class Way { Throw, Abort, Leave, Mismatch };
  int ranks, culprit, calls, when;
  Way way;
};

Accident accident(uint64_t seed) {
  std::mt19937_64 draw(seed);
  Accident a{};
  a.ranks = 2 + static_cast<int>(draw() % 5);
  a.culprit = static_cast<int>(draw() % a.ranks);
  a.calls = 1 + static_cast<int>(draw() % 12);
  a.when = static_cast<int>(draw() % a.calls);
  a.way = static_cast<Accident::Way>(draw() % 4);
  return a;
}

struct Thrown : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void run_to_the_accident(Communicator& world, const Accident& a, uint64_t seed) {
  std::mt19937_64 draw(seed);  // the same calls on every rank
  auto half = world.split(world.rank() % 2, 0, "half");
  std::vector<Work> works;
  for (int i = 0; i < a.calls; ++i) {
    Communicator& group = draw() % 2 ? world : *half;
    int64_t n = group.size(), chunk = static_cast<int64_t>(draw() % 50000);
    uint64_t kind = draw() % 4;
    if (world.rank() == a.culprit && i == a.when) {
      if (a.way == Accident::Way::Throw) throw Thrown("by accident");
      if (a.way == Accident::Way::Abort) world.abort("by accident");
      if (a.way == Accident::Way::Leave) return;
      if (a.way == Accident::Way::Mismatch) ++chunk;
    }
    if (kind == 0) works.push_back(group.all_reduce(floats(chunk), ReduceOp::Sum));
    if (kind == 1) works.push_back(group.all_gather(floats(n * chunk), floats(chunk)));
    if (kind == 2) works.push_back(group.reduce_scatter(floats(chunk), floats(n * chunk), ReduceOp::Max));
    if (kind == 3) works.push_back(group.broadcast(floats(chunk), 0));
    if (draw() % 2) works[draw() % works.size()].wait_host();
  }
  for (Work& work : works) work.wait_host();
  world.barrier().wait_host();
}

void check_accident(const Accident& a, uint64_t seed, const ThreadRankOptions& options) {
  try {
    run_ranks(
        a.ranks, [&](Communicator& world) { run_to_the_accident(world, a, seed); }, options);
    // Alone in its half, the odd call agrees with everybody's.
    EXPECT_EQ(a.way, Accident::Way::Mismatch);
  } catch (const Thrown&) {
    EXPECT_EQ(a.way, Accident::Way::Throw);
  } catch (const CommError& error) {
    EXPECT_NE(a.way, Accident::Way::Throw);
    const CommFailure& failure = error.failure();
    if (a.way == Accident::Way::Mismatch) {
      EXPECT_TRUE(failure.rank == a.culprit ||
                  failure.why.find(cat("where rank ", a.culprit, " ")) != std::string::npos)
          << error.what();
    } else {
      EXPECT_EQ(failure.rank, a.culprit) << error.what();
      EXPECT_TRUE(failure.why.starts_with(a.way == Accident::Way::Abort ? "by accident" : "has ended")) << error.what();
    }
  }
}

TEST(Accidents, of_any_rank_at_any_call_stop_all_and_are_blamed_on_the_right_one) {
  uint64_t count = kTsan ? 60 : full_run() ? 5000 : 400;
  for (uint64_t seed = 0; seed < count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    ThreadRankOptions options{.deadline_seconds = 60};
    if (seed % 3 == 0) options.make_queue = [=](int rank) { return std::make_unique<DelayedQueue>(seed + rank); };
    check_accident(accident(seed), seed, options);
  }
}

TEST(Crowd, sixteen_ranks_on_few_cores_get_through) {
  run_ranks(16, [](Communicator& world) {
    for (int round = 0; round < (kTsan ? 20 : 200); ++round) {
      at::Tensor tensor = empty<float>(500);
      fill<float>(tensor, [&](int64_t i) { return value<float>(round, world.rank(), i); });
      world.all_reduce(tensor, ReduceOp::Sum).wait_host();
      EXPECT_TRUE(holds<float>(tensor, [&](int64_t i) { return expected_sum<float>(round, 16, i, ReduceOp::Sum); }));
    }
  });
}

}  // namespace
}  // namespace braid::comm::tests::failure_test
