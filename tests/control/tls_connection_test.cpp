// Lines between two ends of one process, and a node that has the key and sends what is wrong.
#include "braid/control/tls_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <random>

#include "braid/control/authenticator.h"
#include "braid/control/job_message.h"
#include "tests/control/nodes_of_a_job.h"

namespace braid::control::tls_connection_test {
namespace {

constexpr size_t kMost = size_t{16} << 20;

std::shared_ptr<const JobKeys> keys(int attempt) { return keys_of(kTestToken, attempt); }

std::pair<Socket, Socket> connected_sockets() {
  int ends[2];
  socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
  return {Socket(ends[0]), Socket(ends[1])};
}

TEST(TlsConnection, messages_both_ways) {
  auto [a, b] = connected_sockets();
  const TlsContext context(keys(0));
  TlsConnection server(context, std::move(a), TlsSide::Server, kMost),
      client(context, std::move(b), TlsSide::Client, kMost);
  client.send(framed("to the server"));
  server.send(framed(std::string(1'000'000, 'x')));
  std::optional<std::string> at_server, at_client;
  for (int round = 0; round < 1000 && !(at_server && at_client); ++round) {
    client.advance();
    server.advance();
    if (!at_server) at_server = server.next_message();
    if (!at_client) at_client = client.next_message();
  }
  EXPECT_EQ(at_server, "to the server");
  EXPECT_TRUE(at_client == std::string(1'000'000, 'x'));
  EXPECT_TRUE(server.established() && client.established());
  EXPECT_EQ(server.fault() + client.fault(), "");
}

TEST(TlsConnection, another_attempts_key_opens_nothing) {
  auto [a, b] = connected_sockets();
  const TlsContext context(keys(0)), other(keys(1));
  TlsConnection server(context, std::move(a), TlsSide::Server, kMost),
      client(other, std::move(b), TlsSide::Client, kMost);
  client.send(framed("secret"));
  for (int round = 0; round < 10; ++round) {
    client.advance();
    server.advance();
  }
  EXPECT_EQ(server.fault(), "is in another attempt of the job");
  EXPECT_TRUE(holds(client.fault(), {"has broken TLS"}));
  EXPECT_FALSE(server.established() || client.established() || server.next_message());
}

// The same name of the key, but another key.
TEST(TlsConnection, a_forged_key_opens_nothing) {
  auto [a, b] = connected_sockets();
  const TlsContext context(keys(0)), other(keys_of(std::string(64, 'b'), 0));
  TlsConnection server(context, std::move(a), TlsSide::Server, kMost),
      client(other, std::move(b), TlsSide::Client, kMost);
  for (int round = 0; round < 10; ++round) {
    client.advance();
    server.advance();
  }
  EXPECT_TRUE(holds(server.fault(), {"has broken TLS: binder does not verify"}));
  EXPECT_FALSE(server.established() || client.established());
}

TEST(TlsConnection, plain_bytes_end_it) {
  std::mt19937 dice(5);
  for (int round = 0; round < 200; ++round) {
    auto [a, b] = connected_sockets();
    const TlsContext context(keys(0));
    TlsConnection server(context, std::move(a), TlsSide::Server, kMost);
    std::string bytes = round % 2 == 0 ? std::string("\x16\x03\x01\x02\x00\x01", 6) : "";  // as a ClientHello begins
    for (int i = 0; i < 600; ++i) bytes += static_cast<char>(dice());
    b.send(bytes);
    b.close();
    for (int step = 0; step < 3; ++step) server.advance();
    EXPECT_NE(server.fault(), "");
    EXPECT_FALSE(server.next_message());
  }
}

// A node of the job that has been let in, and whose bytes the test makes.
class ForgedNode {
 public:
  ForgedNode(const JoinOptions& options, std::shared_ptr<const JobKeys> job_keys) : context_(job_keys) {
    Socket socket;
    while (socket = Socket::connecting(loopback_at(options.root.port)), wait(socket, POLLOUT),
           !socket.fault().empty()) {
      poll(nullptr, 0, 10);
    }
    AuthenticationBytes nonce;
    wait(socket, POLLIN);
    socket.receive(nonce);
    socket.send(job_keys->authentication_answer(nonce, {socket.own_end(), socket.peer_end()}));
    wait(socket, POLLIN);
    char verdict = kRefused;
    socket.receive({&verdict, 1});
    EXPECT_EQ(verdict, kAccepted);
    line_ = std::make_unique<TlsConnection>(context_, std::move(socket), TlsSide::Client, kMost);
    line_->send(framed_message(JobHello{kJobProtocol, options.node, options.num_nodes, "", "", {}, options.self}));
  }

  TlsConnection& line() { return *line_; }

 private:
  static void wait(const Socket& socket, short events) {
    pollfd wanted{socket.descriptor(), events, 0};
    poll(&wanted, 1, 10'000);
  }

  TlsContext context_;
  std::unique_ptr<TlsConnection> line_;
};

// Returns the failure in a job of three, of which the last is forged and sends `bytes` as they are.
std::string loss_after(const std::string& bytes) {
  auto all = job_options(3);
  std::unique_ptr<ForgedNode> forged;
  std::jthread forging([&] {
    forged = std::make_unique<ForgedNode>(all[2], keys(0));
    for (int i = 0; i < 200 && !forged->line().next_message(); ++i) {
      forged->line().advance();
      poll(nullptr, 0, 10);
    }
  });
  all.pop_back();
  NodesOfAJob job(all);
  forging.join();
  forged->line().send(std::make_shared<const std::string>(bytes));
  forged->line().flush();
  job.advance_until([&] { return job.num_heard(0) > 0 && job.num_heard(1) > 0; });
  EXPECT_EQ(job.loss(0), job.loss(1));
  return job.loss(0);
}

TEST(TlsConnection, a_node_that_sends_garbage_is_lost) {
  EXPECT_EQ(loss_after(*framed("\x63 is no kind")), "2 has sent what is no message");
  EXPECT_EQ(loss_after(*framed("")), "2 has sent what is no message");
  EXPECT_EQ(loss_after(std::string(64, '\xff')), "2 has sent what is no message");
  EXPECT_EQ(loss_after(*framed_message(NodeFailure{1, "says who"})), "2 has sent a message that only node 0 sends");
}

TEST(TlsConnection, who_does_not_read_ends_it) {
  auto [a, b] = connected_sockets();
  const TlsContext context(keys(0));
  TlsConnection server(context, std::move(a), TlsSide::Server, 1000);
  server.send(framed(std::string(900, 'x')));
  EXPECT_EQ(server.fault(), "");
  server.send(framed(std::string(900, 'x')));
  EXPECT_TRUE(holds(server.fault(), {"does not read: 1.8 KiB wait for it"}));
  EXPECT_EQ(server.wanted().fd, -1);
}

}  // namespace
}  // namespace braid::control::tls_connection_test
