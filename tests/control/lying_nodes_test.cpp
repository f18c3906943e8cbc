// Nodes that have the token and send what is wrong: each loses itself, and nobody else.
#include <sys/socket.h>

#include <stdexcept>

#include "braid/control/job_member.h"
#include "braid/control/job_reader.h"
#include "braid/control/job_root.h"
#include "tests/control/nodes_of_a_job.h"

namespace braid::control::lying_nodes_test {
namespace {

constexpr size_t kMost = size_t{256} << 20;

const std::vector<JobNode>& three_nodes() {
  static const std::vector<JobNode> kNodes{{"h0", 1}, {"h1", 1}, {"h2", 2}};
  return kNodes;
}

std::shared_ptr<const JobKeys> job_keys() { return keys_of(kTestToken, 0); }

// A validator that refuses events with "bad" in them.
std::string refuses_bad(const JobEvent& event) {
  if (event.bytes == "throws") throw std::out_of_range("99");
  return event.bytes == "bad" ? "has sent what is bad" : "";
}

std::pair<Socket, Socket> two_ends() {
  int ends[2];
  socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
  return {Socket(ends[0]), Socket(ends[1])};
}

std::unique_ptr<TlsConnection> line_of(const TlsContext& context, Socket socket, TlsSide side) {
  return std::make_unique<TlsConnection>(context, std::move(socket), side, kMost);
}

Frame raw(const std::string& message) { return framed(message); }

// A kind, a length and so many bytes.
std::string text_message(char kind, size_t size) {
  std::string message(1, kind);
  for (int i = 0; i < 4; ++i) message += static_cast<char>(size >> (8 * i));
  return message + std::string(size, 'x');
}

// Node 0, and the test as nodes 1 and 2.
class LyingMembers {
 public:
  LyingMembers() : peer_context_(job_keys()), peers_(3) {
    RootParts parts{std::make_unique<TlsContext>(job_keys()), nullptr, {}, three_nodes(), Heartbeat(60)};
    parts.reception = std::make_unique<Acceptor>(Authenticator(Socket::listening("test", loopback_at(0)), job_keys()),
                                                 *parts.context, kMost);
    parts.lines.resize(3);
    for (const size_t node : {1, 2}) {
      auto [here, there] = two_ends();
      parts.lines[node] = line_of(*parts.context, std::move(here), TlsSide::Server);
      peers_[node] = line_of(peer_context_, std::move(there), TlsSide::Client);
    }
    root = std::make_unique<JobRoot>(std::move(parts));
    root->set_validator(refuses_bad);
  }

  void send(int node, const Frame& frame) { peers_[static_cast<size_t>(node)]->send(frame); }
  // Until node 0 has heard of `count` events.
  void advance_until_heard(size_t count) {
    for (const double end = now_seconds() + 60; heard.size() < count && now_seconds() < end; poll(nullptr, 0, 1)) {
      for (JobEvent& event : root->advance()) heard.push_back(std::move(event));
      for (const size_t node : {1, 2}) advance_peer(node);
    }
    EXPECT_EQ(heard.size(), count);
    for (int turn = 0; turn < 5; ++turn) root->advance(), advance_peer(2);
  }

  std::unique_ptr<JobRoot> root;
  std::vector<JobEvent> heard;        // by node 0
  std::vector<JobMessage> told_to_2;  // but for heartbeats

 private:
  void advance_peer(size_t node) {
    peers_[node]->advance();
    while (const auto bytes = peers_[node]->next_message()) {
      const auto message = parse_job_message(*bytes);
      if (node == 2 && message && !std::holds_alternative<JobHeartbeat>(*message)) told_to_2.push_back(*message);
    }
  }

  const TlsContext peer_context_;
  std::vector<std::unique_ptr<TlsConnection>> peers_;
};

// Node 1 sends `frame`, and node 2 a word after that.
void expect_node_1_is_lost(const Frame& frame, const std::string& why) {
  LyingMembers job;
  job.send(1, frame);
  job.advance_until_heard(1);
  EXPECT_EQ(job.heard[0].kind, JobEvent::Kind::Lost);
  EXPECT_EQ(job.heard[0].node, 1);
  EXPECT_TRUE(holds(job.heard[0].bytes, {why}));
  job.send(2, framed_message(JobBroadcastRequest{"word"}));
  job.advance_until_heard(2);
  EXPECT_EQ(job.heard[1].node, 2);
  EXPECT_EQ(job.heard[1].bytes, "word");
  ASSERT_EQ(job.told_to_2.size(), 2u);  // nothing of node 1 was relayed
  const auto* loss = std::get_if<NodeFailure>(&job.told_to_2[0]);
  EXPECT_TRUE(loss && loss->node == 1 && loss->why == job.heard[0].bytes);
}

TEST(LyingNodes, a_member_that_sends_what_is_no_message_is_lost_alone) {
  for (const std::string& message : {std::string("\x63"), std::string(), std::string("\x03\xff\xff\xff\xff", 5),
                                     std::string("\x05\x02"), text_message('\x03', kMaxBroadcastBytes + 1)}) {
    expect_node_1_is_lost(raw(message), "has sent what is no message");
  }
  expect_node_1_is_lost(framed_message(JobHeartbeat{std::string(kMostReportBytes + 1, 'x')}),
                        "has sent what is no message");
  expect_node_1_is_lost(std::make_shared<const std::string>("\xff\xff\xff\xff"
                                                            "xx"),
                        "");
}

TEST(LyingNodes, a_member_that_speaks_as_node_0_is_lost_alone) {
  for (const JobMessage& message : {JobMessage(JobTable{three_nodes()}), JobMessage(JobBroadcast{2, "word"}),
                                    JobMessage(NodeFailure{2, "gone"}), JobMessage(JobRefusal{{"no"}})}) {
    expect_node_1_is_lost(framed_message(message), "has sent a message that only node 0 sends");
  }
}

TEST(LyingNodes, what_the_judge_refuses_is_not_relayed) {
  expect_node_1_is_lost(framed_message(JobBroadcastRequest{"bad"}), "has sent what is bad");
  expect_node_1_is_lost(framed_message(JobBroadcastRequest{"throws"}), "has sent what cannot be handled: 99");
  expect_node_1_is_lost(framed_message(JobHeartbeat{"bad"}), "has sent what is bad");
}

TEST(LyingNodes, the_longest_word_is_relayed) {
  LyingMembers job;
  job.send(1, framed_message(JobBroadcastRequest{std::string(kMaxBroadcastBytes, 'x')}));
  job.advance_until_heard(1);
  EXPECT_EQ(job.heard[0].kind, JobEvent::Kind::Broadcast);
  EXPECT_EQ(job.heard[0].bytes.size(), kMaxBroadcastBytes);
}

TEST(LyingNodes, who_is_lost_by_its_owner_is_lost_by_all) {
  LyingMembers job;
  job.root->fail_node(1, "has lied");
  job.advance_until_heard(1);
  EXPECT_EQ(job.heard[0].bytes, "has lied");
  ASSERT_EQ(job.told_to_2.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<NodeFailure>(job.told_to_2[0]));
}

// Returns the events of member 1 when node 0 sends `frame`.
std::vector<JobEvent> heard_from_root(const Frame& frame) {
  const TlsContext context(job_keys());
  auto [here, there] = two_ends();
  auto root = line_of(context, std::move(there), TlsSide::Server);
  auto own = std::make_unique<TlsContext>(job_keys());
  auto line = line_of(*own, std::move(here), TlsSide::Client);
  JobMember member({std::move(own), std::move(line), 1, three_nodes(), Heartbeat(60)});
  member.set_validator(refuses_bad);
  root->send(frame);
  std::vector<JobEvent> heard;
  for (const double end = now_seconds() + 60; heard.empty() && now_seconds() < end; poll(nullptr, 0, 1)) {
    root->advance();
    for (JobEvent& event : member.advance()) heard.push_back(std::move(event));
  }
  return heard;
}

TEST(LyingNodes, a_member_loses_a_node_0_that_lies) {
  const auto expect_lost = [](const Frame& frame, const std::string& why) {
    const auto heard = heard_from_root(frame);
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].kind, JobEvent::Kind::Lost);
    EXPECT_EQ(heard[0].node, 0);
    EXPECT_TRUE(holds(heard[0].bytes, {why}));
  };
  for (const int node : {-1, 3, 99, 2'000'000'000}) {
    expect_lost(framed_message(JobBroadcast{node, "word"}), cat("has named node ", node, " of 3 nodes"));
    expect_lost(framed_message(NodeFailure{node, "gone"}), cat("has named node ", node, " of 3 nodes"));
  }
  expect_lost(framed_message(JobBroadcast{2, "bad"}), "has relayed a message of node 2, which has sent what is bad");
  expect_lost(framed_message(JobBroadcast{2, "throws"}), "99");
  expect_lost(framed_message(JobTable{three_nodes()}), "has sent a message that is not node 0's");
  expect_lost(raw("\x63"), "has sent what is no message");
  EXPECT_EQ(heard_from_root(framed_message(JobBroadcast{2, "word"}))[0].bytes, "word");
}

TEST(LyingNodes, a_table_that_cannot_be_is_refused) {
  JoinOptions options = job_options(3)[1];
  options.self = three_nodes()[1];
  EXPECT_EQ(table_problem({three_nodes()}, options), "");
  EXPECT_EQ(table_problem({{{"h0", 1}}}, options), "has sent a table of 1 nodes, of which there are 3");
  EXPECT_EQ(table_problem({}, options), "has sent a table of 0 nodes, of which there are 3");
  EXPECT_EQ(table_problem({{{"h0", 1}, {"h9", 1}, {"h2", 2}}}, options),
            "has sent a table in which node 1 is not itself");
  options.ranks_of_nodes = {1, 1, 1};
  EXPECT_EQ(table_problem({three_nodes()}, options), "has sent a table in which node 2 starts 2 ranks, not 1");
}

TEST(LyingNodes, a_node_of_impossible_ranks_is_no_message) {
  for (const int num_ranks : {-5, 0, kMostRanksOfNode + 1, 2'000'000'000}) {
    JobHello hello{.node = 1, .num_nodes = 2, .self = {"h1", num_ranks}};
    EXPECT_FALSE(parse_job_message(framed_message(hello)->substr(kFrameHeadBytes))) << num_ranks;
    EXPECT_FALSE(parse_job_message(framed_message(JobTable{{{"h1", num_ranks}}})->substr(kFrameHeadBytes)));
  }
  JobHello nameless{.node = 1, .self = {std::string(kMostHostBytes + 1, 'h'), 1}};
  EXPECT_FALSE(parse_job_message(framed_message(nameless)->substr(kFrameHeadBytes)));
}

TEST(LyingNodes, other_numbers_of_ranks_than_the_run_has_are_refused) {
  auto all = job_options(2);
  for (auto& options : all) options.ranks_of_nodes = {1, 1};
  all[0].fault_seconds = 0.1;
  for (const std::string& error : join_each(all).errors) {
    EXPECT_TRUE(holds(error, {"node 1 on h1: starts 2 ranks; node 0 counts on 1"}));
  }
}

// Each node's settings fit; what is said of them would not.
TEST(LyingNodes, reasons_are_shortened_to_what_a_frame_holds) {
  const std::vector<std::string> reasons(2000, std::string(size_t{1} << 16, 'x'));
  const auto refusal = parse_job_message(framed_message(JobRefusal{reasons})->substr(kFrameHeadBytes));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(std::get<JobRefusal>(*refusal).reasons.size(), kMostRefusalBytes >> 16);
  const auto loss =
      parse_job_message(framed_message(NodeFailure{1, std::string(size_t{1} << 20, 'x')})->substr(kFrameHeadBytes));
  ASSERT_TRUE(loss);
  EXPECT_EQ(std::get<NodeFailure>(*loss).why.size(), kMostReasonBytes);
}

}  // namespace
}  // namespace braid::control::lying_nodes_test
