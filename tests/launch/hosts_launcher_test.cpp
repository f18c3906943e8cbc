// Nodes of a job as processes of the test, each of which starts its ranks: on loopback, over TCP.
#include "braid/launch/hosts_launcher.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <stop_token>
#include <thread>

#include "braid/control/join_job.h"
#include "braid/launch/node_agent.h"
#include "tests/control/nodes_of_a_job.h"
#include "tests/launch/forked.h"
#include "tests/support/shared_array.h"

namespace braid::launch::tests::hosts_launcher_test {
namespace {

// The result of a node: what its run() returned or threw.
struct NodeEnd {
  std::vector<std::string> values;
  std::string error;
};
template <class Pack>
void members(Pack& pack, NodeEnd& end) {
  pack(end.values, end.error);
}

// Runs `body` on the ranks of all nodes, of which node n starts ranks[n].
std::vector<NodeEnd> run_on_hosts(const std::vector<int>& ranks, const Launcher::Body& body, LaunchOptions launch = {},
                                  double heartbeat_seconds = 3) {
  std::vector<control::JoinOptions> all = job_options(static_cast<int>(ranks.size()));
  launch.deadline_seconds = kDeadline;
  launch.grace_seconds = 1;
  launch.threads_per_rank = 1;
  const auto node = [&](Communicator& place) {
    alarm(kTooLongSeconds);
    control::JoinOptions& join = all[static_cast<size_t>(place.rank())];
    join.heartbeat_seconds = heartbeat_seconds;
    join.self.num_ranks = ranks[static_cast<size_t>(place.rank())];
    const auto control = control::join_job(in_child(join));
    JobRounds rounds(*control);
    const std::vector<int> nodes = nodes_of_ranks(control->nodes());
    NodeEnd end;
    try {
      end.values = HostsLauncher(rounds, {nodes, "127.0.0.1"}).run(static_cast<int>(nodes.size()), body, launch);
    } catch (const std::exception& error) {
      end.error = error.what();
    }
    return end;
  };
  return values_by_rank(ProcessLauncher(), static_cast<int>(ranks.size()), node, {.threads_per_rank = 1});
}

std::string sum_of_ranks(Communicator& world) {
  const at::Tensor sum = at::full({3}, world.rank() + 1.0);
  world.all_reduce(sum, ReduceOp::Sum).wait_host();
  return cat("rank ", world.rank(), ": ", sum[2].item<double>());
}

TEST(HostsLauncher, every_node_gets_what_all_ranks_return) {
  for (const NodeEnd& end : run_on_hosts({2, 1}, sum_of_ranks)) {
    EXPECT_EQ(end.error, "");
    EXPECT_EQ(end.values, (std::vector<std::string>{"rank 0: 6", "rank 1: 6", "rank 2: 6"}));
  }
}

TEST(HostsLauncher, what_a_rank_throws_is_thrown_on_every_node) {
  const auto ends = run_on_hosts({1, 2}, [](Communicator& world) -> std::string {
    if (world.rank() == 2) throw RunError("the paper is out");
    world.barrier().wait_host();
    return "";
  });
  for (const NodeEnd& end : ends) EXPECT_EQ(end.error, "the paper is out");
}

// Rank 0 sees the connection close before it hears why.
TEST(HostsLauncher, what_a_rank_throws_comes_before_what_others_report_of_it) {
  const auto ends = run_on_hosts({1, 2}, [](Communicator& world) -> std::string {
    if (world.rank() == 0) {
      world.barrier().wait_host();
      throw CommError({"barrier #1 on world", -1, 0, "a connection is closed"});
    }
    try {
      for (;;) world.barrier().wait_host();
    } catch (const CommError&) {
      if (world.rank() == 2) throw RunError("the paper is out");
      throw;
    }
  });
  for (const NodeEnd& end : ends) EXPECT_EQ(end.error, "the paper is out");
}

TEST(HostsLauncher, a_value_that_no_message_holds_is_an_error_of_its_rank) {
  const auto ends = run_on_hosts({1, 1}, [](Communicator& world) {
    world.barrier().wait_host();
    return std::string(world.rank() == 1 ? HostsLauncher::kMostReturned + 1 : 0, 'x');
  });
  for (const NodeEnd& end : ends) {
    EXPECT_NE(end.error.find("a rank of several hosts returns at most 60 MiB"), std::string::npos) << end.error;
  }
}

TEST(HostsLauncher, a_rank_that_is_killed_is_named_on_every_node) {
  const auto ends = run_on_hosts({1, 1}, [](Communicator& world) -> std::string {
    world.activity()->begin("forward of microbatch 5 on stage 1");
    world.barrier().wait_host();
    if (world.rank() == 1) die();
    for (;;) world.barrier().wait_host();
  });
  EXPECT_EQ(ends[0].error.substr(ends[0].error.find("rank 1")), ends[1].error.substr(ends[1].error.find("rank 1")));
  for (const NodeEnd& end : ends) {
    EXPECT_NE(end.error.find("rank 1: killed by signal 9 (Killed), process "), std::string::npos) << end.error;
    EXPECT_NE(end.error.find(": forward of microbatch 5 on stage 1"), std::string::npos) << end.error;
  }
}

TEST(HostsLauncher, a_rank_that_hangs_is_named_on_every_node) {
  const auto ends = run_on_hosts({1, 1},
                                 [](Communicator& world) -> std::string {
                                   world.activity()->begin("step 1");
                                   if (world.rank() == 0) raise(SIGSTOP);
                                   world.barrier().wait_host();
                                   return "";
                                 },
                                 {.progress_seconds = 1});
  for (const NodeEnd& end : ends) {
    // "connecting to all ranks" comes before it; on rank 1, connecting to rank 0 too.
    EXPECT_NE(end.error.find("rank 0: makes no progress on h0 (rank 0 at its activity 2, step 1"), std::string::npos)
        << end.error;
    EXPECT_NE(end.error.find("rank 1 at its activity 3, step 1, waits for barrier #0 on world"), std::string::npos)
        << end.error;
  }
}

TEST(HostsLauncher, a_node_that_dies_is_named_on_the_others) {
  const auto all_but = [](int lost) {
    return [lost](Communicator& world) -> std::string {
      world.barrier().wait_host();
      if (world.rank() == lost) kill(getppid(), SIGKILL);
      for (;;) world.barrier().wait_host();
    };
  };
  std::vector<control::JoinOptions> all = job_options(3);
  for (const int lost : {0, 2}) {
    SharedArray<int> told;
    const auto node = [&](Communicator& place) {
      const auto control = control::join_job(in_child(all[static_cast<size_t>(place.rank())]));
      JobRounds rounds(*control);
      try {
        HostsLauncher(rounds, {{0, 1, 2}, "127.0.0.1"})
            .run(3, all_but(lost), {.threads_per_rank = 1, .grace_seconds = 1});
      } catch (const CommError& error) {
        told[place.rank()] = error.failure().rank == lost ? 1 : 2;
      }
    };
    for (control::JoinOptions& join : all) join.self.num_ranks = 1;
    EXPECT_THROW(run_process_ranks(3, node, {.threads_per_rank = 1}), CommError);
    for (int place = 0; place < 3; ++place) EXPECT_EQ(told[place], place == lost ? 0 : 1) << lost << " " << place;
  }
}

// Its ranks live on meanwhile, and see the others' connections close.
TEST(HostsLauncher, a_node_that_was_stopped_blames_no_rank) {
  const auto ends = run_on_hosts(
      {1, 1},
      [](Communicator& world) -> std::string {
        world.barrier().wait_host();
        if (world.rank() == 0) kill(getppid(), SIGSTOP);
        try {
          for (;;) world.barrier().wait_host();
        } catch (const CommError&) {
          if (world.rank() == 0) kill(getppid(), SIGCONT);
          throw;
        }
      },
      {}, 0.6);
  EXPECT_NE(ends[0].error.find("rank 1: node 1 on h1 has closed its connection"), std::string::npos) << ends[0].error;
  EXPECT_NE(ends[1].error.find("rank 0: node 0 on h0 was silent for 0."), std::string::npos) << ends[1].error;
}

// Returns the error of node 0's launch when node 1 does not take part.
std::string error_where_node_1(const std::function<void(JobRounds&)>& refuses) {
  std::vector<control::JoinOptions> all = job_options(2);
  for (control::JoinOptions& join : all) join.self.num_ranks = 1;
  const auto node = [&](Communicator& place) -> std::string {
    const auto control = control::join_job(in_child(all[static_cast<size_t>(place.rank())]));
    JobRounds rounds(*control);
    if (place.rank() == 1) {
      refuses(rounds);  // control may be the heartbeat thread's afterwards
      return "";
    }
    try {
      HostsLauncher(rounds, {{0, 1}, "127.0.0.1"}).run(2, sum_of_ranks, {.threads_per_rank = 1, .grace_seconds = 1});
    } catch (const CommError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  return values_by_rank(ProcessLauncher(), 2, node, {.threads_per_rank = 1})[0];
}

TEST(HostsLauncher, why_a_node_refuses_is_said_on_the_others) {
  const std::string told = error_where_node_1([](JobRounds& rounds) {
    rounds.begin();
    send_refusal(rounds, "no such text");
  });
  EXPECT_TRUE(told.ends_with("node 1 on h1: no such text")) << told;
}

TEST(HostsLauncher, why_a_node_cannot_fork_is_said_on_the_others) {
  const std::string told = error_where_node_1([](JobRounds& rounds) {
    std::jthread other([](const std::stop_token& ends) {
      while (!ends.stop_requested()) poll(nullptr, 0, 1);
    });
    const HostsLauncher launcher(rounds, {{0, 1}, "127.0.0.1"});
    EXPECT_THROW(launcher.run(2, sum_of_ranks, {.threads_per_rank = 1}), ConfigError);
  });
  EXPECT_NE(told.find("node 1 on h1: process ranks: must be forked before any other thread starts"), std::string::npos)
      << told;
}

TEST(HostsLauncher, one_launch_follows_another) {
  const auto twice = [](Communicator& place) {
    const auto control = control::make_solo_job({"h0", 2});
    JobRounds rounds(*control);
    const HostsLauncher launcher(rounds, {{0, 0}, "127.0.0.1"});
    return launcher.run(2, sum_of_ranks, {})[1] + launcher.run(2, sum_of_ranks, {})[0];
  };
  EXPECT_EQ(values_by_rank(ProcessLauncher(), 1, twice, {.threads_per_rank = 1})[0], "rank 1: 3rank 0: 3");
}

TEST(JobRounds, words_of_one_round_are_not_heard_in_another) {
  const auto solo = control::make_solo_job({"here", 1});
  JobRounds rounds(*solo);
  rounds.begin();
  rounds.broadcast(Contribution{"early"});
  EXPECT_EQ(rounds.exchange(std::string("mine")), std::vector<std::string>{"mine"});
}

}  // namespace
}  // namespace braid::launch::tests::hosts_launcher_test
