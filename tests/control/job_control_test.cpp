// Messages between nodes that have joined.
#include "braid/control/job_control.h"

#include <sys/wait.h>

#include "tests/control/nodes_of_a_job.h"

namespace braid::control::job_control_test {
namespace {

using enum JobEvent::Kind;

std::vector<JoinOptions> with_heartbeat(double seconds, int num_nodes) {
  auto all = job_options(num_nodes);
  for (auto& options : all) options.heartbeat_seconds = seconds;
  return all;
}

TEST(SoloJob, hears_itself) {
  const auto job = make_solo_job({"here", 4});
  EXPECT_EQ(job->nodes().front().num_ranks, 4);
  job->broadcast("word");
  job->report_progress("7");
  std::vector<pollfd> watched;
  EXPECT_EQ(job->watch(watched), 0);
  const auto heard = job->advance();
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0].bytes, "word");
  EXPECT_EQ(heard[1].kind, Progress);
  EXPECT_TRUE(job->advance().empty());
}

TEST(JobControl, all_hear_all_in_one_order) {
  NodesOfAJob job(job_options(3));
  for (int word = 0; word < 40; ++word) {
    for (int node = 0; node < 3; ++node) job[node].broadcast(cat(word));
    if (word % 7 == 0) job.advance();
  }
  job.advance_until([&] {
    return std::ranges::all_of(std::vector{0, 1, 2}, [&](int node) { return job.num_heard(node) == 120; });
  });
  for (int node : {1, 2}) EXPECT_EQ(job.words(node, Broadcast), job.words(0, Broadcast));
  std::vector<std::string> of_two;
  for (const auto& word : job.words(0, Broadcast)) {
    if (word.starts_with("2 ")) of_two.push_back(word);
  }
  ASSERT_EQ(of_two.size(), 40u);
  for (int word = 0; word < 40; ++word) EXPECT_EQ(of_two[word], cat("2 ", word));
}

TEST(JobControl, long_words_arrive_whole) {
  NodesOfAJob job(job_options(3));
  std::string word(9'000'001, '\0');
  for (size_t i = 0; i < word.size(); ++i) word[i] = static_cast<char>(i * 2654435761u >> 24);
  job[1].broadcast(word);
  job[0].broadcast("");
  job.advance_until([&] { return job.num_heard(0) + job.num_heard(1) + job.num_heard(2) == 6; });
  for (int node = 0; node < 3; ++node) {
    for (const JobEvent& event : job.heard[node]) EXPECT_TRUE(event.bytes == (event.node == 1 ? word : ""));
  }
}

TEST(JobControl, what_is_too_long_is_our_mistake) {
  const std::string word((size_t{64} << 20) - 63, 'x');
  NodesOfAJob job(job_options(2));
  for (int node : {0, 1}) EXPECT_THROW(job[node].broadcast(word), InternalError);
}

TEST(JobControl, progress_is_the_newest_and_node_zeros) {
  NodesOfAJob job(with_heartbeat(1.2, 2));
  job.advance();  // beats are due at once, and then not for a fifth of a second
  job.advance();
  for (int step = 0; step < 9; ++step) job[1].report_progress(cat(step));
  job.advance_until([&] { return job.num_heard(0) > 0; });
  job.advance_for(0.5);  // later beats do not repeat it
  EXPECT_EQ(job.words(0, Progress), std::vector<std::string>{"1 8"});
  EXPECT_EQ(job.num_heard(1), 0u);
}

TEST(JobControl, who_closes_is_lost_at_once) {
  NodesOfAJob job(job_options(3));
  job[2].broadcast("last");
  job.destroy(2);
  job.advance_until([&] { return job.num_heard(0) == 2 && job.num_heard(1) == 2; });
  for (int node : {0, 1}) {
    EXPECT_EQ(job.words(node, Broadcast), std::vector<std::string>{"2 last"});
    EXPECT_EQ(job.loss(node), "2 has closed its connection");
  }
  job[1].broadcast("still here");
  job.advance_until([&] { return job.num_heard(0) == 3 && job.num_heard(1) == 3; });
}

TEST(JobControl, without_node_zero_nothing_is_heard_but_what_it_said_last) {
  NodesOfAJob job(job_options(3));
  const std::string last(9'000'000, 'z');  // more than the system takes at once
  job[0].broadcast(last);
  for (int node : {1, 2}) job[node].broadcast("in vain");  // is there unread when node 0 closes
  std::jthread ending([root = job.take(0)]() mutable { root.reset(); });
  job.advance_until([&] { return job.num_heard(1) == 2 && job.num_heard(2) == 2; });
  for (int node : {1, 2}) {
    EXPECT_TRUE(job.heard[node][0].bytes == last);
    EXPECT_TRUE(holds(job.loss(node), {"0 has "}));
    job[node].broadcast("to nobody");
  }
  job.advance_for(0.1);
  EXPECT_EQ(job.num_heard(1), 2u);
}

TEST(JobControl, who_is_silent_is_lost_and_hears_so) {
  NodesOfAJob job(with_heartbeat(0.3, 3));
  job.hold(2);
  job.advance_until([&] { return job.num_heard(0) == 1 && job.num_heard(1) == 1; });
  for (int node : {0, 1}) EXPECT_TRUE(holds(job.loss(node), {"2 was silent for 0."}));
  job.release(2);
  job.advance_until([&] { return job.num_heard(2) > 0; });
  job[2].broadcast("to nobody");
  job.advance_for(0.1);
  EXPECT_TRUE(holds(job.loss(2), {"2 was silent for 0."}));
  EXPECT_EQ(job.num_heard(0), 1u);
}

TEST(JobControl, a_silent_node_zero_is_lost) {
  NodesOfAJob job(with_heartbeat(0.3, 3));
  job.hold(0);
  job.advance_until([&] { return job.num_heard(1) == 1 && job.num_heard(2) == 1; });
  for (int node : {1, 2}) EXPECT_TRUE(holds(job.loss(node), {"0 was silent for 0."}));
}

// Nobody is lost for what the judge has slept through.
TEST(JobControl, who_slept_judges_nobody) {
  NodesOfAJob job(with_heartbeat(0.3, 3));
  job.advance_for(0.1);
  for (int node : {1, 2}) job.hold(node);
  for (int round = 0; round < 2; ++round) {
    poll(nullptr, 0, 500);
    job.advance();
  }
  EXPECT_TRUE(job.words(0, Lost).empty());
}

TEST(JobControl, who_does_not_read_is_lost) {
  auto all = job_options(3);
  for (auto& options : all) options.most_queued_bytes = 2 << 20;
  NodesOfAJob job(all);
  job.hold(2);
  const std::string word(500'000, 'x');
  const auto lost = [&] { return !job.words(1, Lost).empty(); };
  job.advance_until([&] {
    if (!lost()) job[0].broadcast(word);
    return lost();
  });
  EXPECT_TRUE(holds(job.loss(1), {"2 does not read: 2."}));
}

TEST(JobControl, a_child_that_leaves_keeps_no_line_open) {
  NodesOfAJob job(job_options(3));
  const pid_t child = fork();
  if (child == 0) {
    for (int node = 0; node < 3; ++node) job[node].leave_to_child();
    job[1].broadcast("from a child");
    pause();
  }
  job.destroy(1);
  job.advance_until([&] { return job.num_heard(0) == 1 && job.num_heard(2) == 1; });
  for (int node : {0, 2}) EXPECT_EQ(job.loss(node), "1 has closed its connection");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace braid::control::job_control_test
