// Joining while some of the nodes are missing: who comes and goes, who waits, who comes late.
#include <atomic>
#include <mutex>

#include "braid/control/authenticator.h"
#include "braid/control/join_steps.h"
#include "braid/control/tls_connection.h"
#include "tests/control/nodes_of_a_job.h"

namespace braid::control::awaited_nodes_test {
namespace {

// Up to its hello.
std::unique_ptr<TlsConnection> said_hello(const JoinOptions& options, const TlsContext& context, const JobKeys& keys) {
  Socket socket = dial(options.root.port);
  while (!socket.fault().empty()) {
    poll(nullptr, 0, 10);
    socket = dial(options.root.port);
  }
  AuthenticationBytes nonce{};
  std::ranges::copy(receive(socket, nonce.size()), nonce.begin());
  socket.send(keys.authentication_answer(nonce, {socket.own_end(), socket.peer_end()}));
  EXPECT_EQ(receive(socket, 1), std::string(1, kAccepted));
  auto line = std::make_unique<TlsConnection>(context, std::move(socket), TlsSide::Client, options.most_queued_bytes);
  line->send(framed_message(hello_of(options)));
  return line;
}

// Whom node 0 says that it waits for.
class Awaited {
 public:
  explicit Awaited(JoinOptions& root) {
    root.on_wait_seconds = 0.01;
    root.on_wait = [this](const std::string& what) {
      const std::scoped_lock hold(lock_);
      said_ = what;
    };
  }
  void until(const std::string& nodes, const std::function<void()>& meanwhile) {
    for (const double end = now_seconds() + 20; said() != nodes && now_seconds() < end; poll(nullptr, 0, 1))
      meanwhile();
    EXPECT_EQ(said(), nodes);
  }

 private:
  std::string said() {
    const std::scoped_lock hold(lock_);
    return said_;
  }

  std::mutex lock_;
  std::string said_;
};

// Node 1 of three comes, with `options`, and goes.
void come_and_go(const JoinOptions& options, Awaited& awaited) {
  const JobKeys& keys = *options.keys;
  const TlsContext context(options.keys);
  auto line = said_hello(options, context, keys);
  awaited.until("node 2", [&] { line->advance(); });
  line.reset();
  awaited.until("nodes 1, 2", [] {});
}

TEST(AwaitedNodes, a_fault_that_is_gone_hurries_nobody) {
  auto all = job_options(3);
  all[0].fault_seconds = 0.5;
  Awaited awaited(all[0]);
  std::string error;
  std::jthread root([&] { error = error_of(all[0]); });
  auto wrong = all[1];
  wrong.settings = {"a = 2"};
  come_and_go(wrong, awaited);
  poll(nullptr, 0, 700);
  EXPECT_EQ(join_each({all[1], all[2]}).errors, std::vector<std::string>(2));
  root.join();
  EXPECT_EQ(error, "");
}

TEST(AwaitedNodes, where_nodes_are_missing_in_the_end_the_last_fault_is_named) {
  auto all = job_options(3);
  all[0].join_seconds = 1;
  all[0].settings = {"a = 1"};
  all[1].settings = {"a = 2"};
  Awaited awaited(all[0]);
  std::string error;
  std::jthread root([&] { error = error_of(all[0]); });
  come_and_go(all[1], awaited);
  root.join();
  EXPECT_TRUE(holds(error, {"node 1 on h1: has a = 2; node 0 a = 1", "nodes 1, 2 did not come within "}));
  EXPECT_GE(seconds_waited(error), 1.0);
}

// A node fails after five seconds of silence.
TEST(AwaitedNodes, node_zero_beats_while_it_waits_for_others) {
  auto all = job_options(3);
  for (auto& options : all) options.heartbeat_seconds = 0.6;
  std::jthread root([&] { join_job(all[0]); });
  const JobKeys& keys = *all[1].keys;
  const TlsContext context(all[1].keys);
  const auto line = said_hello(all[1], context, keys);
  int beats = 0;
  for (const double until = now_seconds() + 20; beats < 3 && now_seconds() < until; poll(nullptr, 0, 5)) {
    line->advance();
    while (const auto bytes = line->next_message()) {
      beats += std::holds_alternative<JobHeartbeat>(parse_job_message(*bytes).value_or(JobTable{}));
    }
  }
  EXPECT_EQ(beats, 3);
  std::jthread last([&] { join_job(all[2]); });
}

TEST(AwaitedNodes, who_comes_late_is_told) {
  auto all = job_options(2);
  NodesOfAJob job(all);
  std::string error;
  std::atomic<bool> told = false;
  std::jthread late([&] {
    error = error_of(all[1]);
    told = true;
  });
  job.advance_until([&] { return told.load(); });
  late.join();
  EXPECT_EQ(error, "config: node 1 on h1: came when the job had begun");
  EXPECT_EQ(job.num_heard(0), 0u);
}

}  // namespace
}  // namespace braid::control::awaited_nodes_test
