// Messages that the nodes of a job send in rounds and with heartbeats, and the one reader of their bytes.
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

// A value that a rank of the sender has set for the ranks of all nodes.
struct ValueSet {
  std::string key, value;
};
// The first failure that the sender knows. Its ranks are ranks of the world, or -1.
struct RanksFailed {
  comm::Failure failure;
};
// The outcome (rank_outcome.h) of a rank of the sender.
struct RankEnded {
  int rank = 0;
  std::string outcome;
};
// The end of all ranks of the sender.
struct RanksGone {};
// The sender's packed value in an exchange, which determines its type (job_rounds.h).
struct Contribution {
  std::string bytes;
};
using RoundBody = std::variant<ValueSet, RanksFailed, RankEnded, RanksGone, Contribution>;

struct RoundMessage {
  int round = 0;
  RoundBody body;
};
// Samples of the sender's ranks and their activities in words, in the order in which the ranks were started.
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
