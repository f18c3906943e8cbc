// Nodes that may join, and the refusals of all others.
#include "braid/control/join_job.h"

#include <atomic>
#include <fstream>
#include <set>
#include <utility>

#include "braid/control/authenticator.h"
#include "tests/control/nodes_of_a_job.h"

namespace braid::control::join_job_test {
namespace {

TEST(JoinJob, all_nodes_have_the_table) {
  NodesOfAJob job(job_options(3));
  for (int node = 0; node < 3; ++node) {
    EXPECT_EQ(job[node].node(), node);
    ASSERT_EQ(job[node].nodes().size(), 3u);
    for (int other = 0; other < 3; ++other) {
      EXPECT_EQ(job[node].nodes()[other].host, cat("h", other));
      EXPECT_EQ(job[node].nodes()[other].num_ranks, 1 + other);
    }
  }
}

TEST(JoinJob, with_this_hosts_own_token_on_loopback) {
  auto all = job_options(2);
  for (auto& options : all) options.on_this_host = true;
  NodesOfAJob job(all);
  job[1].broadcast("here");
  job.advance_until([&] { return job.num_heard(0) == 1; });
}

TEST(JoinJob, with_this_hosts_own_token_nowhere_else) {
  auto options = job_options(2);
  for (int node = 0; node < 2; ++node) {
    options[node].on_this_host = true;
    options[node].join_seconds = 0.2;
    options[node].root.host = "192.0.2.1";
    EXPECT_TRUE(holds(error_of(options[node]), {"config: root = 192.0.2.1:", "(token)"}));
  }
}

TEST(JoinJob, node_zero_listens_on_one_interface_of_its_own) {
  auto options = job_options(2)[0];
  options.join_seconds = 0.2;
  for (const char* host : {"0.0.0.0", "::", "::ffff:0.0.0.0"}) {
    options.root.host = host;
    EXPECT_TRUE(holds(error_of(options), {"stands for all interfaces"})) << host;
  }
  options.root.host = "192.0.2.1";
  EXPECT_TRUE(holds(error_of(options), {"config: ", "no address of this host"}));
}

TEST(JoinJob, the_port_is_another_jobs) {
  auto options = job_options(2);
  options[0].join_seconds = 0.5;
  NodesOfAJob job(options);
  EXPECT_TRUE(holds(error_of(options[0]), {"config: ", "another program listens there"}));
}

TEST(JoinJob, where_connecting_fails_at_once_its_reason_is_said) {
  auto options = job_options(2)[1];
  options.join_seconds = 0.2;
  options.root = {"224.0.0.1", 9};  // nobody connects to many hosts
  EXPECT_TRUE(holds(error_of(options), {"run: ", "224.0.0.1:9: Network is unreachable"}));
}

// All listeners of this machine with the port, as the system prints them.
TEST(JoinJob, nobody_listens_elsewhere) {
  const auto options = job_options(2);
  NodesOfAJob job(options);
  std::ostringstream port;
  port << ':' << std::uppercase << std::hex << std::setw(4) << std::setfill('0') << options[0].root.port;
  std::vector<std::string> places;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line, number, local, remote, state; std::getline(file, line);) {
      std::istringstream(line) >> number >> local >> remote >> state;
      if (local.ends_with(port.str()) && state == "0A") places.push_back(local.substr(0, local.find(':')));
    }
  }
  EXPECT_EQ(places, std::vector<std::string>{"0100007F"});
}

TEST(JoinJob, another_token_is_refused_on_both_sides) {
  auto all = job_options(3);
  for (auto& options : all) options.join_seconds = 1.5;
  all[1].keys = keys_of(std::string(64, 'b'), 0);
  all[2].keys = keys_of(std::string(64, 'c'), 0);
  const auto errors = join_each(all).errors;
  EXPECT_TRUE(holds(errors[0], {"nodes 1, 2 did not come within ", " refused: the token is another", "127.0.0.1"}));
  for (const auto& error : errors) EXPECT_GE(seconds_waited(error), 1.5);
  for (int node : {1, 2}) {
    EXPECT_TRUE(holds(errors[node], {cat("node ", node, " is refused: the token (token) is another")}));
    EXPECT_FALSE(holds(errors[node], {"aaaa"}) || holds(errors[node], {"bbbb"}));
  }
}

TEST(JoinJob, another_attempt_does_not_meet) {
  auto all = job_options(2);
  for (auto& options : all) options.join_seconds = 2;
  all[1].keys = keys_of(kTestToken, 1);
  const auto errors = join_each(all).errors;
  EXPECT_TRUE(holds(errors[0], {"node 1 did not come within ", "attempt"}));
  EXPECT_GE(seconds_waited(errors[0]), 2.0);
  EXPECT_TRUE(holds(errors[1], {"node 1 did not reach node 0", "attempt"}));
}

// Node 0 refuses the first call of node 1 and closes its later ones, as it does while it ends.
TEST(JoinJob, a_refusal_is_not_forgotten_when_node_zero_closes) {
  auto options = job_options(2)[1];
  options.join_seconds = 1;
  const Socket listener = Socket::listening("test", loopback_at(options.root.port));
  std::atomic<bool> ended = false;
  std::string error;
  std::jthread node([&] {
    error = error_of(options);
    ended = true;
  });
  for (bool first = true; !ended; poll(nullptr, 0, 1)) {
    Socket heard = listener.accept();
    if (!heard || !std::exchange(first, false)) continue;
    heard.send(std::string(sizeof(AuthenticationBytes), 'n') + kRefused);
    receive(heard, sizeof(AuthenticationBytes));
  }
  node.join();
  EXPECT_TRUE(holds(error, {"did not reach node 0", "node 1 is refused: the token"}));
}

TEST(JoinJob, nobody_listens) {
  auto options = job_options(2)[1];
  options.join_seconds = 0.2;
  const std::string error = error_of(options);
  EXPECT_TRUE(holds(error, {"run: node 1 did not reach node 0 at 127.0.0.1:", "refused"}));
  EXPECT_GE(seconds_waited(error), 0.2);
}

TEST(JoinJob, a_host_that_nobody_knows_is_refused_soon) {
  auto all = job_options(2);
  for (auto& options : all) {
    options.root.host = "no-such-host.invalid";  // RFC 2606: no name ends so
    options.name_seconds = 0.2;
    EXPECT_TRUE(
        holds(error_of(options), {"config: root = no-such-host.invalid:", ": no-such-host.invalid is no known"}));
  }
}

TEST(JoinJob, what_is_waited_for_is_said) {
  auto all = job_options(3);
  std::vector<std::set<std::string>> said(3);
  for (int node = 0; node < 3; ++node) {
    all[node].join_seconds = 1;
    all[node].on_wait_seconds = 0.05;
    all[node].on_wait = [&, node](const std::string& what) { said[node].insert(what); };
  }
  for (auto& options : all) options.heartbeat_seconds = 0.3;
  error_of(all[1]);
  EXPECT_TRUE(holds(said[1].empty() ? "" : *said[1].begin(), {"node 0: 127.0.0.1:", "refused"}));
  join_each({all[0], all[1]});
  EXPECT_TRUE(said[0].contains("node 2"));
  EXPECT_TRUE(said[1].contains("node 2"));
}

TEST(JoinJob, who_has_another_token_is_told_of_where_others_are_awaited) {
  auto all = job_options(2);
  std::set<std::string> said;
  for (auto& options : all) options.join_seconds = 2;
  all[0].on_wait_seconds = 0.1;
  all[0].on_wait = [&](const std::string& what) { said.insert(what); };
  all[1].keys = keys_of(std::string(64, 'b'), 0);
  join_each(all);
  EXPECT_TRUE(holds(said.empty() ? "" : *said.rbegin(),
                    {"node 1; ", " refused: the token is another, or the attempt", "(the last from 127.0.0.1"}));
}

TEST(JoinJob, who_does_not_come_is_a_failure_of_the_world) {
  auto all = job_options(4);
  for (auto& options : all) options.join_seconds = 3;
  std::vector<std::string> errors(2);
  {
    std::jthread root([&] { errors[0] = error_of(all[0]); });
    errors[1] = error_of(all[1]);
  }
  for (const std::string& error : errors) {
    EXPECT_TRUE(holds(error, {"run: nodes 2, 3 did not come within "}));
    EXPECT_GE(seconds_waited(error), 3.0);
  }
}

TEST(JoinJob, another_program_listens_at_the_address) {
  auto options = job_options(2)[1];
  options.join_seconds = 0;  // one call
  const Socket listener = Socket::listening("test", resolve(options.root).found.at(0));
  std::jthread other([&] {
    Socket heard;
    for (const double until = now_seconds() + 10; !heard && now_seconds() < until; poll(nullptr, 0, 5)) {
      heard = listener.accept();
    }
    const std::string banner = "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n";
    heard.send(banner);
    receive(heard, sizeof(AuthenticationBytes));
  });
  EXPECT_TRUE(holds(error_of(options), {"run: ", " within 0 s: another program listens there"}));
}

// Node 1 of a job joins it though somebody without the token answered its first call with `words`. What it threw.
std::string error_after(const std::string& words) {
  auto all = job_options(2);
  all[0].join_seconds = 10;
  Socket listener = Socket::listening("test", loopback_at(all[0].root.port));
  std::string error;
  std::jthread node([&] { error = error_of(all[1]); });
  Socket heard;
  while (!(heard = listener.accept())) poll(nullptr, 0, 1);
  heard.send(words);
  if (words.size() >= sizeof(AuthenticationBytes)) receive(heard, sizeof(AuthenticationBytes));
  heard.close();
  listener.close();
  error_of(all[0]);
  node.join();
  return error;
}

TEST(JoinJob, whoever_has_no_token_ends_no_node) {
  const std::string nonce(sizeof(AuthenticationBytes), 'n');
  for (const std::string& words : {std::string("x"), nonce + kRefused, nonce + "x", nonce + kAccepted + nonce}) {
    EXPECT_EQ(error_after(words), "") << words.size();
  }
}

// Somebody without the token hands node 0's nonce on to a node that calls him, and its answer to node 0.
TEST(JoinJob, a_relayed_challenge_is_refused) {
  auto all = job_options(2);
  const int port = all[0].root.port;
  all[0].join_seconds = 2;
  all[1].join_seconds = 1;
  all[1].root.port = free_port();
  Socket listener = Socket::listening("test", loopback_at(all[1].root.port));
  std::jthread root([&] { error_of(all[0]); }), node([&] { error_of(all[1]); });
  Socket from_node, to_root;
  while (!(from_node = listener.accept())) poll(nullptr, 0, 1);
  for (to_root = dial(port); !to_root.fault().empty(); to_root = dial(port)) poll(nullptr, 0, 1);
  from_node.send(receive(to_root, sizeof(AuthenticationBytes)));
  to_root.send(receive(from_node, sizeof(AuthenticationBytes)));
  EXPECT_EQ(receive(to_root, 100), std::string(1, kRefused));
  from_node.close();
  listener.close();
}

TEST(JoinJob, other_commands_are_one_fault) {
  auto all = job_options(2);
  all[0].settings = {"command = train", "a = 1", "b = 2"};
  all[1].settings = {"command = doctor"};
  for (const std::string& error : join_each(all).errors) {
    EXPECT_EQ(error, "node 1 on h1: has command = doctor; node 0 command = train");
  }
}

TEST(JoinJob, all_hear_all_that_is_wrong) {
  auto all = job_options(5);
  for (auto& options : all) options.join_seconds = 1;
  for (auto& options : all) options.settings = {"a = 1", "b = 2", "c = 3"};
  all[1].settings = {"a = 1", "b = 4", "d = 5"};
  all[2].engines = "gloo 3";
  all[3].node = 1;
  all[4].num_nodes = 7;
  const auto errors = join_each(all).errors;
  for (const auto& error : errors) EXPECT_EQ(error, errors[0]);
  for (const char* part : {"node 1 on h1: has b = 4, d = 5; node 0 b = 2, c = 3", "node 2 on h2: has gloo 3, node 0 ",
                           "node 1 is there twice: h1 and h3", "node 4 on h4: is one of 7 nodes, node 0 one of 5",
                           "node 3 did not come within 1"}) {
    EXPECT_TRUE(holds(errors[0], {part}));
  }
}

}  // namespace
}  // namespace braid::control::join_job_test
