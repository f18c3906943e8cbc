// Messages that the nodes of a job send in rounds and with heartbeats: one struct for each, and the one reader of their
// bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "braid/comm/failure_state.h"
#include "braid/control/job_control.h"
#include "braid/launch/hang_detector.h"

namespace braid::launch {

// A value that some rank has set, for the ranks of all nodes.
struct ValueSet {
  std::string key, value;
};
// The first failure that a node knows of; ranks are those of the world, or -1.
struct RanksFailed {
  comm::Failure failure;
};
// The outcome of a rank of the node (rank_outcome.h).
struct RankEnded {
  int rank = 0;
  std::string outcome;
};
// No rank of the node runs any more.
struct RanksGone {};
// A node's part in an exchange; its type is the exchange's (job_rounds.h).
struct Contribution {
  std::string bytes;
};
using RoundBody = std::variant<ValueSet, RanksFailed, RankEnded, RanksGone, Contribution>;

struct RoundMessage {
  int round = 0;
  RoundBody word;
};
// The signs of a node's ranks in the order in which they were started, and what each is doing, in words.
struct RanksReport {
  int round = 0;
  std::vector<RankSample> signs;
  std::vector<std::string> states;
};

std::string round_message_bytes(RoundMessage message);
std::string ranks_report_bytes(RanksReport report);
// Reads and validates the bytes of a node: their form, and every count, index and number against `nodes` and against
// the current round. Returns nothing for invalid bytes; `fault` then continues the sentence "node 1 on h1 ".
struct RoundReader {
  const std::vector<control::JobNode>& nodes;
  int round = 0;

  std::optional<RoundMessage> message(std::string_view bytes, std::string& fault) const;
  std::optional<RanksReport> report(int node, std::string_view bytes, std::string& fault) const;
};

}  // namespace braid::launch
