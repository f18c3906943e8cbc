// Strangers at the door of a job: silent, slow, talkative, many. They take at most 64 places and nobody's time.
#include "braid/control/authenticator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>

#include "braid/control/acceptor.h"
#include "tests/control/nodes_of_a_job.h"
#include "tests/support/held_bytes.h"
#include "tests/support/sampled.h"

namespace braid::control::authenticator_test {
namespace {

AuthenticationBytes answer_of(const JobKeys& keys, const AuthenticationBytes& nonce, const Socket& connection) {
  return keys.authentication_answer(nonce, {connection.own_end(), connection.peer_end()});
}

struct OpenGate {
  int port = free_port();
  Authenticator authenticator{Socket::listening("test", loopback_at(port)), test_keys()};
};

TEST(Authenticator, who_knows_the_answer_is_let_in) {
  OpenGate open;
  Socket node = dial(open.port);
  EXPECT_TRUE(open.authenticator.advance().empty());
  EXPECT_EQ(open.authenticator.num_pending(), 1u);
  AuthenticationBytes nonce;
  const std::string sent = receive(node, nonce.size());
  ASSERT_EQ(sent.size(), nonce.size());
  std::ranges::copy(sent, nonce.begin());
  const AuthenticationBytes answer = answer_of(*test_keys(), nonce, node);
  node.send(std::span(answer).first(31));
  EXPECT_TRUE(open.authenticator.advance().empty());
  node.send(std::span(answer).subspan(31));
  EXPECT_EQ(open.authenticator.advance().size(), 1u);
  EXPECT_EQ(open.authenticator.num_pending(), 0u);
  EXPECT_EQ(receive(node, 1), std::string(1, kAccepted));
}

// Neither an answer to another nonce, nor one of another job or attempt, nor one that is
// a bit off, nor one that belongs on another connection to node 0.
TEST(Authenticator, other_answers_are_refused_after_64_bytes_and_a_word) {
  OpenGate open;
  const auto keys = test_keys(), others = keys_of(std::string(64, 'b'), 0), earlier = keys_of(kTestToken, 1);
  for (int kind = 0; kind < 5; ++kind) {
    Socket stranger = dial(open.port);
    open.authenticator.advance();
    AuthenticationBytes nonce{};
    const std::string sent = receive(stranger, nonce.size());
    if (kind > 0) std::ranges::copy(sent, nonce.begin());
    AuthenticationBytes answer = answer_of(kind == 1 ? *others : kind == 3 ? *earlier : *keys, nonce, stranger);
    if (kind == 2) answer[31] ^= 1;
    if (kind == 4) answer = answer_of(*keys, nonce, dial(open.port));
    stranger.send(answer);
    EXPECT_TRUE(open.authenticator.advance().empty());
    EXPECT_EQ(receive(stranger, 100), std::string(1, kRefused));
    EXPECT_EQ(open.authenticator.num_refused(), kind + 1);
  }
  EXPECT_TRUE(holds(open.authenticator.last_refused(), {"127.0.0.1:"}));
}

TEST(Authenticator, the_silent_have_64_places_and_not_for_long) {
  OpenGate open;
  std::vector<Socket> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(dial(open.port));
  open.authenticator.advance();
  open.authenticator.advance();
  EXPECT_EQ(open.authenticator.num_pending(), Authenticator::kMostPending);
  const double until = now_seconds() + Authenticator::kAnswerSeconds - 1;  // those behind do not wait so long
  char byte = 0;
  while (silent[99].receive({&byte, 1}).bytes == 0 && now_seconds() < until) {
    poll(nullptr, 0, 5);
    open.authenticator.advance();
    EXPECT_LE(open.authenticator.num_pending(), Authenticator::kMostPending);
  }
  EXPECT_EQ(receive(silent[99], 31).size(), 31u);
  EXPECT_EQ(receive(silent[0], 33).size(), 32u);  // and closed
}

// It knows the answer, and says no hello.
Socket silent_inside(Acceptor& reception, int port) {
  Socket node = dial(port);
  reception.advance();
  AuthenticationBytes nonce{};
  std::ranges::copy(receive(node, nonce.size()), nonce.begin());
  node.send(answer_of(*test_keys(), nonce, node));
  reception.advance();
  EXPECT_EQ(receive(node, 1), std::string(1, kAccepted));
  return node;
}

bool is_closed(Socket& socket) {
  char byte = 0;
  return !socket.receive({&byte, 1}).closed.empty();
}

TEST(Acceptor, those_without_a_hello_have_64_places_and_not_for_long) {
  const int port = free_port();
  const TlsContext context(test_keys());
  Acceptor reception({Socket::listening("test", loopback_at(port)), test_keys()}, context, size_t{1} << 20);
  std::vector<Socket> silent;
  const double begin = now_seconds();
  for (int i = 0; i < 70; ++i) silent.push_back(silent_inside(reception, port));
  if (now_seconds() - begin > Acceptor::kPatienceSeconds) GTEST_SKIP() << "this machine is too busy";
  EXPECT_EQ(reception.arrivals().size(), Acceptor::kMaxPending);
  EXPECT_FALSE(is_closed(silent[0]));
  EXPECT_TRUE(is_closed(silent[69]));
  while (now_seconds() - begin <= 2 * Acceptor::kPatienceSeconds) poll(nullptr, 0, 10);
  Socket late = silent_inside(reception, port);
  EXPECT_EQ(reception.arrivals().size(), Acceptor::kMaxPending);
  EXPECT_TRUE(is_closed(silent[0]));
  EXPECT_FALSE(is_closed(late));
}

// One of several ways to be a stranger.
void bother(Socket& socket, int kind, std::mt19937& dice) {
  std::string bytes;
  if (kind == 1) bytes.assign(16, 'h');       // half an answer
  if (kind == 2) bytes.assign(3, '\xff');     // one byte after the other, below
  if (kind == 3) bytes.assign(4096, '\xff');  // lengths that no frame has
  if (kind == 4) bytes = "GET / HTTP/1.1\r\nHost: braid\r\n\r\n";
  if (kind == 5) {
    for (int i = 0; i < 64; ++i) bytes += static_cast<char>(dice());
  }
  socket.send(bytes);
}

// They come as fast as they can, at most 150 at a time.
void come(int port, int count, std::atomic<bool>& done) {
  std::mt19937 dice(7);
  std::deque<Socket> there;
  for (int i = 0; i < count; ++i) {
    there.push_back(dial(port));
    bother(there.back(), i % 6, dice);
    for (Socket& slow : there) slow.send({"x", 1});
    if (there.size() > 150) there.pop_front();
  }
  done = true;
}

TEST(Authenticator, three_nodes_beat_while_strangers_come) {
  auto all = job_options(3);
  for (auto& options : all) options.heartbeat_seconds = 1;
  NodesOfAJob job(all);
  std::atomic<bool> done = false;
  const size_t before = held_bytes();
  std::jthread strangers([&] { come(all[0].root.port, full_run() ? 10'000 : 300, done); });
  int said = 0;
  while (!done) {
    job[said % 3].broadcast(cat(said));
    ++said;
    job.advance();
  }
  strangers.join();
  const auto heard_all = [&](int node) { return job.words(node, JobEvent::Kind::Broadcast).size() == size_t(said); };
  job.advance_until([&] { return heard_all(0) && heard_all(1) && heard_all(2); });
  for (int node = 0; node < 3; ++node) EXPECT_TRUE(job.words(node, JobEvent::Kind::Lost).empty());
  EXPECT_LT(held_bytes(), before + (size_t{32} << 20));
}

// A node comes though all places are taken by the silent.
TEST(Authenticator, nodes_come_through_a_crowd) {
  auto all = job_options(2);
  std::atomic<bool> done = false;
  std::jthread crowd([&] {
    std::vector<Socket> silent;
    while (!done) {
      silent.push_back(dial(all[0].root.port));
      if (silent.size() > 200) silent.erase(silent.begin());
      poll(nullptr, 0, 1);
    }
  });
  const JoinedNodes joined = join_each(all);
  done = true;
  EXPECT_EQ(joined.errors, std::vector<std::string>(2));
}

}  // namespace
}  // namespace braid::control::authenticator_test
