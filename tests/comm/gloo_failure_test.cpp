// Ways in which ranks over Gloo fail: at odds, late, gone, aborted. Everybody learns the same first failure,
// and nobody hangs.
#include <gtest/gtest.h>
#include <poll.h>

#include <barrier>
#include <random>

#include "braid/base/clock.h"
#include "tests/comm/conformance.h"
#include "tests/comm/failures.h"
#include "tests/comm/gloo_ranks.h"
#include "tests/comm/values.h"
#include "tests/support/thread_limit.h"

namespace braid::comm::tests::gloo_failure_test {
namespace {

using Body = std::function<void(Communicator&)>;

const Backend kGloo = {
    .name = "gloo", .run = [](int num_ranks, const Body& body) { run_gloo_ranks(num_ranks, body); }, .more = 8 << 20};

INSTANTIATE_TEST_SUITE_P(Gloo, Failures, testing::Values(kGloo), name_of);

CommFailure failure_of(int num_ranks, const Body& body, const GlooRanks& options = {}) {
  return failure_in([&] { run_gloo_ranks(num_ranks, body, options); });
}

TEST(GlooMismatch, names_both_ranks_and_what_they_called) {
  struct {
    std::function<Work(Communicator&)> call;
    const char* text;
  } odd[] = {
      {[](Communicator& g) { return g.all_reduce(zeros(100001), ReduceOp::Sum); }, "all_reduce(Float[100001], sum)"},
      {[](Communicator& g) { return g.all_reduce(zeros(11), ReduceOp::Sum); }, "all_reduce(Float[11], sum)"},
      {[](Communicator& g) { return g.all_reduce(zeros(100000), ReduceOp::Max); }, "all_reduce(Float[100000], max)"},
      {[](Communicator& g) { return g.all_reduce(zeros(100000).to(at::kDouble), ReduceOp::Sum); },
       "all_reduce(Double[100000], sum)"},
      {[](Communicator& g) { return g.broadcast(zeros(100000), 1); }, "broadcast(Float[100000], root 1)"},
      {[](Communicator& g) { return g.all_gather(zeros(30), zeros(10)); }, "all_gather(chunks of Float[10])"},
      {[](Communicator& g) { return g.barrier(); }, "barrier()"},
  };
  for (const auto sums : {ReductionOrder::Tree, ReductionOrder::Engine}) {
    for (const auto& [call, text] : odd) {
      const CommFailure failure =
          failure_of(3,
                     [&](Communicator& world) {
                       world.barrier().wait_host();
                       Work work = world.rank() == 1 ? call(world) : world.all_reduce(zeros(100000), ReduceOp::Sum);
                       work.wait_host();
                     },
                     {.sums = sums});
      const std::string usual = "all_reduce(Float[100000], sum)", by_odd = cat("called ", text, " where rank ");
      EXPECT_TRUE(failure.rank == 1
                      ? failure.why.starts_with(by_odd) &&
                            failure.why.ends_with(cat("called ", usual, " (call #1 on world)"))
                      : failure.why == cat("called ", usual, " where rank 1 called ", text, " (call #1 on world)"))
          << failure.rank << ": " << failure.why;
    }
  }
}

TEST(GlooDeadline, names_who_is_missing) {
  std::barrier over(3);
  const auto body = [&](Communicator& world) {
    sum_for(world, "first");
    const CallName name("second");
    if (world.rank() == 0) {
      Work first = world.barrier();
      EXPECT_THROW(world.all_reduce(zeros(5), ReduceOp::Sum).wait_host(), CommError);  // the barrier is to blame
    }
    over.arrive_and_wait();
  };
  const CommFailure failure = failure_of(3, body, {.deadline_seconds = 2});
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.why,
            "did not arrive at barrier #1 on world for second within 2 s (missing: rank 1, 2); the last call of rank "
            "1 there is #0 all_reduce(Float[8], sum) for first");
}

TEST(GlooDeadline, of_a_message_names_the_peer) {
  for (const auto kind : {P2p::Kind::Send, P2p::Kind::Recv}) {
    std::barrier over(2);
    const CommFailure failure =
        failure_of(2,
                   [&](Communicator& world) {
                     if (world.rank() == 0) {
                       EXPECT_THROW(message(world, kind, 1, zeros(100000)).wait_host(), CommError);
                     }
                     over.arrive_and_wait();
                   },
                   {.deadline_seconds = 2});
    EXPECT_EQ(failure.rank, 1);
    EXPECT_TRUE(failure.why.starts_with("did not arrive at transfer ")) << failure.why;
    EXPECT_TRUE(failure.why.ends_with("within 2 s (missing: rank 1)")) << failure.why;
  }
}

TEST(GlooDeadline, of_coming_together_names_who_did_not_come) {
  control::LocalStore store;
  OneFailureState failures;
  HostQueue queue;
  try {
    make_gloo_world({.self = {.rank = 1, .size = 3, .failures = &failures, .deadline_seconds = 0.1}, .store = &store},
                    queue);
    FAIL() << "nothing was thrown";
  } catch (const CommError& error) {
    EXPECT_EQ(error.failure().rank, 0);
    EXPECT_EQ(error.failure().why, "did not arrive at the start of Gloo on world within 0.1 s (missing: rank 0, 2)");
  }
}

// Or it would count as hung where another host prepares itself for long.
TEST(GlooStart, says_that_it_waits_for_those_who_have_not_come) {
  control::LocalStore store;
  OneFailureState failures;
  HostQueue queue;
  RankActivity activity;
  WorldOptions options{.self = {.rank = 0, .size = 2, .failures = &failures, .activity = &activity}, .store = &store};
  std::jthread first([options] {
    HostQueue own;
    make_gloo_world(options, own);
  });
  const auto waits_for = [&] { return activity.look().waits_in; };
  for (const double until = now_seconds() + 30; waits_for().empty() && now_seconds() < until;) poll(nullptr, 0, 1);
  EXPECT_EQ(waits_for(), "the start of Gloo on world");
  options.self.rank = 1;
  options.self.activity = nullptr;
  make_gloo_world(options, queue);
}

// A peer that has come and then cannot be reached: neither of the two is named alone.
TEST(GlooStart, names_both_ends_of_a_connection_that_is_not_made) {
  control::LocalStore store;
  OneFailureState failures;
  HostQueue queue;
  RankActivity activity;
  store.set("world/here/1", "");
  try {
    make_gloo_world(
        {.self = {.rank = 0, .size = 2, .failures = &failures, .deadline_seconds = 0.3, .activity = &activity},
         .store = &store},
        queue);
    FAIL() << "nothing was thrown";
  } catch (const CommError& error) {
    EXPECT_EQ(error.failure().rank, -1);
    EXPECT_TRUE(error.failure().why.starts_with("rank 0 cannot connect to rank 1: ")) << error.failure().why;
  }
  EXPECT_EQ(activity.look().what, "connecting to rank 1");
  EXPECT_TRUE(activity.look().of_storage) << "the hang watch is as patient as with files";
}

// Its rank tells its address for sums only once the test lets it.
class LateForSums final : public control::KeyValueStore {
 public:
  explicit LateForSums(control::LocalStore& store) : store_(store) {}
  void set(const std::string& key, const std::string& value) override {
    const bool of_sums = key.starts_with("sums/") && key.find("/here/") == key.npos;
    while (of_sums && !is_let) poll(nullptr, 0, 1);
    store_.set(key, value);
  }
  std::optional<std::string> get(const std::string& key, double seconds) override { return store_.get(key, seconds); }
  std::atomic<bool> is_let{false};

 private:
  control::LocalStore& store_;
};

TEST(GlooStart, connecting_for_sums_is_an_activity) {
  control::LocalStore store;
  LateForSums late(store);
  OneFailureState failures;
  RankActivity activities[2];
  const auto live = [&](int rank) {
    HostQueue queue;
    const auto world = make_gloo_world({.self = {.rank = rank,
                                                 .size = 2,
                                                 .failures = &failures,
                                                 .sums = ReductionOrder::Engine,
                                                 .activity = &activities[rank]},
                                        .store = rank == 0 ? static_cast<control::KeyValueStore*>(&store) : &late},
                                       queue);
    activities[rank].begin("step 1");
    EXPECT_NO_THROW(world->all_reduce(empty<float>(1 << 20).zero_(), ReduceOp::Sum).wait_host());
  };
  std::jthread first(live, 0), second(live, 1);
  const auto aside = [&] { return activities[0].look().aside; };
  for (const double until = now_seconds() + 30; aside().empty() && now_seconds() < until;) poll(nullptr, 0, 1);
  EXPECT_EQ(aside(), "connecting to rank 1 for sums on world");
  EXPECT_TRUE(activities[0].look().of_storage) << "the hang watch is as patient as with files";
  late.is_let = true;
  first.join();
  EXPECT_EQ(aside(), "");
}

TEST(GlooStart, says_where_it_cannot_listen) {
  control::LocalStore store;
  OneFailureState failures;
  HostQueue queue;
  try {
    make_gloo_world({.self = {.rank = 0, .size = 2, .failures = &failures}, .store = &store, .address = "192.0.2.1"},
                    queue);
    FAIL() << "nothing was thrown";
  } catch (const CommError& error) {
    EXPECT_TRUE(error.failure().why.starts_with("cannot listen on 192.0.2.1: ")) << error.failure().why;
  }
}

// Engines start threads too, before the connections do.
TEST(GlooStart, without_threads_for_its_connections_a_rank_says_so) {
  int by_connections = 0;
  for (int threads = 0; threads < 8; ++threads) {
    SCOPED_TRACE(threads);
    control::LocalStore store;
    OneFailureState failures;
    const auto start = [&](int rank) {
      const ThreadLimit limit(rank == 1 ? threads : 1000);
      HostQueue queue;
      make_gloo_world(
          {.self = {.rank = rank, .size = 2, .failures = &failures, .deadline_seconds = 20}, .store = &store}, queue);
    };
    std::jthread other([&] {
      try {
        start(0);
      } catch (const CommError&) {
      }
    });
    try {
      start(1);
      break;  // so many are enough
    } catch (const RunError& error) {
      EXPECT_STREQ(error.what(), "cannot start a thread for a connection: Resource temporarily unavailable");
      failures.fail({1, 1, error.what()});
      ++by_connections;
    } catch (const CommError& error) {
      const std::string what = error.what();
      EXPECT_TRUE(what.ends_with("Resource temporarily unavailable")) << what;
    }
  }
  EXPECT_EQ(by_connections, 2) << "one thread for frames, one for payloads";
}

TEST(GlooEnds, ranks_that_leave_with_hopeless_works_do_not_wait_for_each_other) {
  run_gloo_ranks(3, [](Communicator& world) {
    const int next = (world.rank() + 1) % 3;
    message(world, P2p::Kind::Send, next, zeros(1 << 20), world.rank());
    message(world, P2p::Kind::Recv, next, zeros(1), 100);
    message(world, P2p::Kind::Recv, world.rank(), zeros(1), 101);
    world.barrier().wait_host();  // behind the messages, which have come by then
    if (world.rank() == 0) world.all_reduce(zeros(1 << 20), ReduceOp::Sum);
  });
}

// A rank whose peers have all left still gives them what it has not sent yet.
TEST(GlooEnds, what_nobody_has_waited_for_is_there) {
  for (int turn = 0; turn < 4; ++turn) {
    std::vector<at::Tensor> sums[3];
    run_gloo_ranks(3, [&](Communicator& world) {
      for (int i = 0; i < 150; ++i) {
        sums[world.rank()].push_back(zeros(36000).fill_(1 + world.rank()));  // shares that travel with their headers
        world.all_reduce(sums[world.rank()].back(), ReduceOp::Sum);
      }
    });
    for (const auto& own : sums) {
      for (const at::Tensor& sum : own) ASSERT_TRUE(holds<float>(sum, [](int64_t) { return 6.0f; }));
    }
  }
}

// After wait_host() has thrown, a rank may do what it likes with its tensors.
TEST(GlooAbort, no_peer_touches_a_tensor_whose_wait_has_thrown) {
  for (int seed = 0; seed < (full_run() ? 40 : 6); ++seed) {
    std::barrier all(3);  // not the world's, which fails
    const auto body = [&](Communicator& world) {
      std::mt19937 draw(seed * 3 + world.rank());
      const at::Tensor tensor = zeros(1000000).fill_(1);
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
      tensor.fill_(7);
      all.arrive_and_wait();
      EXPECT_TRUE(holds<float>(tensor, [](int64_t) { return 7.0f; }));
    };
    EXPECT_EQ(failure_of(3, body, {.sums = seed % 2 ? ReductionOrder::Engine : ReductionOrder::Tree}).why, "now");
  }
}

}  // namespace
}  // namespace braid::comm::tests::gloo_failure_test
