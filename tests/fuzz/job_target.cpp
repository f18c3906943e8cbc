// Messages between the nodes of a job, in both directions: raw frames, and well-formed messages with wrong
// contents. Whatever comes, the node that hears it loses others and throws at most CommError.
#include <cstring>

#include "braid/base/errors.h"
#include "braid/base/packed.h"
#include "braid/launch/node_agent.h"
#include "braid/launch/rank_outcome.h"
#include "braid/launch/supervisor.h"
#include "tests/fuzz/target.h"
#include "tests/support/carried_job.h"

namespace braid::fuzz {

using namespace comm;
using namespace control;
using namespace launch;

namespace {

const std::vector<JobNode>& nodes_of_fuzz() {
  static const std::vector<JobNode> kNodes{{"h0", 1}, {"h1", 1}, {"h2", 2}};
  return kNodes;
}
const std::vector<int>& ranks_of_fuzz() {
  static const std::vector<int> kNodeOfRank{0, 1, 2, 2};
  return kNodeOfRank;
}

struct Message {
  int from;
  std::string bytes;
};

// The answers of an exchange, of which the first value is a truth value.
struct FuzzAnswer {
  bool yes = true;
  std::vector<std::string> words;
};
template <class Pack>
void members(Pack& pack, FuzzAnswer& answer) {
  pack(answer.yes, answer.words);
}

// As HostsLauncher does when all is over.
void take_values(const NodeAgent& launch) {
  for (const std::string& outcome : launch.outcomes()) {
    if (outcome.empty()) continue;
    check(RankOutcome::complete(outcome), "what is kept is an outcome");
    try {
      RankOutcome::value(outcome);
    } catch (const std::exception&) {
    }
  }
}

// Node `node` hears all of it in a launch, and what is left in an exchange.
void hear_all(int node, const std::vector<Message>& messages) {
  CarriedJob job(node, nodes_of_fuzz());
  JobRounds rounds(job);
  rounds.begin();
  RankBoard board(1);
  NodeAgent launch(rounds, board, ranks_of_fuzz(), 1);
  SignalRelay signals({});
  Supervisor supervisor({board, board, signals, launch}, {1});
  rounds.broadcast(RankEnded{node, RankOutcome::returned("")});  // no process is started for it
  for (const Message& message : messages) {
    job.receive(message.from, message.bytes);
    launch.advance(supervisor);
    launch.look(supervisor, {});
  }
  check(rounds.lost_node() < static_cast<int>(nodes_of_fuzz().size()), "a node is lost that there is");
  check((rounds.lost_node() < 0) == rounds.loss().empty(), "a node is lost for a reason");
  take_values(launch);
  if (rounds.lost_node() < 0) job.receive(node == 0 ? 1 : 0, "");  // so that the exchange ends
  try {
    rounds.exchange(FuzzAnswer{});
  } catch (const CommError&) {
  }
}

// The bytes of the stream as frames, which go to node 0 from its members by turns, or all from node 0 to node 1.
void run_job_frames(const std::string& input) {
  FrameReader reader;
  reader.add(input);
  std::vector<Message> to_root, to_member;
  int from = 1;
  for (const std::string& bytes : reader.messages()) {
    to_root.push_back({from, bytes});
    to_member.push_back({0, bytes});
    from = 3 - from;
    const auto message = parse_job_message(bytes);
    const auto* table = message ? std::get_if<JobTable>(&*message) : nullptr;
    JoinOptions options;
    options.num_nodes = 3;
    options.node = 1;
    options.self = nodes_of_fuzz()[1];
    if (table) table_problem(*table, options);
  }
  hear_all(0, to_root);
  hear_all(1, to_member);
}

// Numbers and texts out of an input; zeros and empty texts after its end.
class Drawn {
 public:
  explicit Drawn(std::string_view bytes) : left_(bytes) {}

  bool any() const { return !left_.empty(); }
  int byte() {
    const int value = left_.empty() ? 0 : static_cast<unsigned char>(left_[0]);
    left_.remove_prefix(left_.empty() ? 0 : 1);
    return value;
  }
  // Mostly small, and now and then whatever an int may be.
  int number() {
    const int value = byte();
    if (value < 128) return value % 5 - 1;
    return static_cast<int>(static_cast<unsigned>(byte()) << 24 | static_cast<unsigned>(byte()) << 8) + byte();
  }
  double real() {
    double value = 0;
    for (size_t i = 0; i < sizeof value; ++i) reinterpret_cast<unsigned char*>(&value)[i] = byte();
    return value;
  }
  std::string text() {
    const std::string value(left_.substr(0, static_cast<size_t>(byte())));
    left_.remove_prefix(std::min(value.size(), left_.size()));
    return value;
  }

 private:
  std::string_view left_;
};

std::string drawn_outcome(Drawn& drawn) {
  static constexpr const char* kTypes[] = {"value", "ConfigError", "CommError", "IoError", "RunError", "error"};
  const int kind = drawn.byte();
  if (kind >= 128) return drawn.text();
  Texts texts{kTypes[kind % 6]};
  for (int left = drawn.byte() % 8; left > 0; --left) texts.push_back(drawn.text());
  return packed(texts);
}

RoundBody drawn_word(Drawn& drawn) {
  switch (drawn.byte() % 5) {
    case 0:
      return ValueSet{drawn.text(), drawn.text()};
    case 1:
      return RanksFailed{{drawn.number(), drawn.number(), drawn.text()}};
    case 2: {
      const int rank = drawn.number();
      return RankEnded{rank, drawn_outcome(drawn)};
    }
    case 3:
      return RanksGone{};
    default:
      return Contribution{drawn.text()};
  }
}

RanksReport drawn_report(Drawn& drawn) {
  RanksReport report{drawn.number(), std::vector<RankSample>(drawn.byte() % 4), {}};
  for (RankSample& signs : report.signs) {
    const int flags = drawn.byte();
    const auto has = [flags](int flag) { return (flags & flag) != 0; };
    signs = {has(1), has(2), has(16), has(4), has(8), drawn.number(), drawn.number(), drawn.real(), drawn.real()};
  }
  for (int left = drawn.byte() % 4; left > 0; --left) report.states.push_back(drawn.text());
  return report;
}

std::string message_bytes(const JobMessage& message) { return framed_message(message)->substr(kFrameHeadBytes); }

// Well-formed messages of the input's kinds and numbers, to node 0 and to node 1.
void run_job_words(const std::string& input) {
  std::vector<Message> to_root, to_member;
  for (Drawn drawn(input); drawn.any();) {
    const int kind = drawn.byte() % 4, from = 1 + drawn.byte() % 2, named = drawn.number();
    if (kind == 0) {
      const std::string report = ranks_report_bytes(drawn_report(drawn));
      to_root.push_back({from, message_bytes(JobHeartbeat{report})});
      to_member.push_back({0, message_bytes(JobHeartbeat{report})});
    } else if (kind == 1) {
      to_member.push_back({0, message_bytes(NodeFailure{named, drawn.text()})});
    } else {
      const int round = drawn.number();
      const std::string word = round_message_bytes({round, drawn_word(drawn)});
      to_root.push_back({from, message_bytes(JobBroadcastRequest{word})});
      to_member.push_back({0, message_bytes(JobBroadcast{named, word})});
    }
  }
  hear_all(0, to_root);
  hear_all(1, to_member);
}

// One of each word, from nodes that may say it.
std::vector<JobMessage> right_messages(bool to_root) {
  std::vector<std::pair<int, RoundBody>> words{{1, ValueSet{"key", "value"}},
                                               {2, ValueSet{"other", "value"}},
                                               {1, RankEnded{1, RankOutcome::returned("value")}},
                                               {2, RankEnded{2, packed(Texts{"CommError", "op", "2", "0.5", "why"})}},
                                               {1, RanksFailed{{1, 1, "why"}}},
                                               {1, RanksGone{}},
                                               {2, Contribution{packed(FuzzAnswer{true, {"word"}})}}};
  std::vector<JobMessage> messages{JobHeartbeat{ranks_report_bytes({1, {RankSample{}}, {"rank 1"}})}};
  for (auto& [node, word] : words) {
    const std::string bytes = round_message_bytes({std::holds_alternative<Contribution>(word) ? 2 : 1, word});
    messages.push_back(to_root ? JobMessage(JobBroadcastRequest{bytes}) : JobMessage(JobBroadcast{node, bytes}));
  }
  if (!to_root) messages.push_back(NodeFailure{2, "was silent"});
  return messages;
}

std::vector<std::string> job_frames_seeds() {
  std::vector<std::string> seeds;
  for (const bool to_root : {true, false}) {
    std::string all;
    for (const JobMessage& message : right_messages(to_root)) {
      seeds.push_back(*framed_message(message));
      all += seeds.back();
    }
    seeds.push_back(all);
  }
  seeds.push_back(*framed_message(JobTable{nodes_of_fuzz()}));
  seeds.push_back(*framed_message(JobHello{.node = 1, .num_nodes = 3, .settings = {"a = 1"}, .self = {"h1", 1}}));
  seeds.push_back(*framed_message(JobRefusal{{"one", "two"}}));
  return seeds;
}

std::vector<std::string> job_words_seeds() {
  std::vector<std::string> seeds;
  for (char kind = 0; kind < 4; ++kind) {
    for (char word = 0; word < 5; ++word) {
      seeds.push_back(std::string{kind, 0, 2, 2, word, 2, 2, 3, 'k', 'e', 'y', 3, 'w', 'h', 'y'});
    }
  }
  return seeds;
}

}  // namespace

Target job_frames_target() {
  return {"job_frames",
          run_job_frames,
          job_frames_seeds,
          {std::string("\xff\xff\xff\xff", 4), std::string("\xfb\xff\xff\xff", 4), std::string("\x63\0\0\0", 4),
           std::string("\x00\x94\x35\x77", 4), std::string("\x01\0\0\0\0\0\0\0", 8), std::string(8, '\xff'),
           std::string(4, '\0'), "\x03", "\x04", "\x05", "\x06", "key", "value", "CommError", "ConfigError", "nan"}};
}

Target job_words_target() {
  return {
      "job_words",
      run_job_words,
      job_words_seeds,
      {std::string("\x03\0\2\2\3", 5), std::string("\x02\1\2\2\2\2\0\1\5value", 13), "\x80\xff\xff\xff",
       "\x80\x7f\xff\xff", std::string("\2\0\2\2\3", 5), std::string("\0\0\0\1", 4), "2", "0.5", "nan", "1e308", "-1"}};
}

}  // namespace braid::fuzz
