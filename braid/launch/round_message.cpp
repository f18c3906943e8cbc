// The fields of each message, and their valid values.
#include "braid/launch/round_message.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "braid/base/packed.h"
#include "braid/base/text.h"
#include "braid/launch/rank_outcome.h"

namespace braid::launch {
namespace {

// Nodes pass through rounds together, except that a node that learns of a failure earlier may be some rounds ahead.
constexpr int kMostRoundsAhead = 16;

int num_ranks_of(const std::vector<control::JobNode>& nodes) {
  return std::accumulate(nodes.begin(), nodes.end(), 0,
                         [](int sum, const control::JobNode& node) { return sum + node.num_ranks; });
}

bool is_past(int round, int number) { return number < 0 || number > round + kMostRoundsAhead; }

std::string word_fault(const RoundBody& word, int num_ranks) {
  const auto is_rank = [&](int rank) { return 0 <= rank && rank < num_ranks; };
  if (const auto* failed = std::get_if<RanksFailed>(&word)) {
    for (const int rank : {failed->failure.rank, failed->failure.reporter}) {
      if (rank != -1 && !is_rank(rank)) return cat("has sent a failure of rank ", rank, " where there are ", num_ranks);
    }
  } else if (const auto* ended = std::get_if<RankEnded>(&word)) {
    if (!is_rank(ended->rank)) return cat("has sent an outcome of rank ", ended->rank, " where there are ", num_ranks);
    if (!RankOutcome::complete(ended->outcome)) return cat("has sent a malformed outcome of rank ", ended->rank);
  }
  return "";
}

bool is_possible(const RankSample& signs) {
  const auto is_count = [](double number) { return std::isfinite(number) && number >= 0; };
  return signs.activities >= 0 && signs.io_bytes >= 0 && is_count(signs.cpu_seconds) && is_count(signs.slowest_step);
}

}  // namespace

template <class Pack>
void members(Pack& pack, ValueSet& set) {
  pack(set.key, set.value);
}
template <class Pack>
void members(Pack& pack, RanksFailed& failed) {
  pack(failed.failure.rank, failed.failure.reporter, failed.failure.why);
}
template <class Pack>
void members(Pack& pack, RankEnded& ended) {
  pack(ended.rank, ended.outcome);
}
template <class Pack>
void members(Pack&, RanksGone&) {}
template <class Pack>
void members(Pack& pack, Contribution& contribution) {
  pack(contribution.bytes);
}
template <class Pack>
void members(Pack& pack, RoundMessage& message) {
  pack(message.round, message.body);
}
template <class Pack>
void members(Pack& pack, RanksReport& report) {
  pack(report.round, report.signs, report.states);
}

std::string round_message_bytes(RoundMessage message) { return packed(std::move(message)); }
std::string ranks_report_bytes(RanksReport report) { return packed(std::move(report)); }

std::optional<RoundMessage> RoundReader::message(std::string_view bytes, std::string& fault) const {
  auto message = unpacked<RoundMessage>(bytes);
  if (!message) {
    fault = "has sent a malformed message";
  } else if (is_past(round, message->round)) {
    fault = cat("has sent a message of round ", message->round, ", before round ", round, " was over");
  } else {
    fault = word_fault(message->body, num_ranks_of(nodes));
  }
  return fault.empty() ? std::move(message) : std::nullopt;
}

std::optional<RanksReport> RoundReader::report(int node, std::string_view bytes, std::string& fault) const {
  auto report = unpacked<RanksReport>(bytes);
  const auto num_ranks = static_cast<size_t>(nodes[static_cast<size_t>(node)].num_ranks);
  if (!report || is_past(round, report->round)) {
    fault = "has sent a malformed report of its ranks";
  } else if (report->signs.size() != num_ranks || report->states.size() != num_ranks) {
    fault = cat("has sent ", report->signs.size(), " samples and ", report->states.size(), " states of ", num_ranks,
                " ranks");
  } else if (!std::ranges::all_of(report->signs, is_possible)) {
    fault = "has sent impossible samples of its ranks";
  }
  return fault.empty() ? std::move(report) : std::nullopt;
}

}  // namespace braid::launch
