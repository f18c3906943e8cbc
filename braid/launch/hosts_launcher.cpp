// Forks this node's ranks. Returns the same values, or throws the same error, on all nodes.
#include "braid/launch/hosts_launcher.h"

#include <algorithm>
#include <csignal>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/control/heartbeat.h"
#include "braid/control/job_message.h"
#include "braid/control/join_job.h"
#include "braid/launch/engines.h"
#include "braid/launch/node_agent.h"
#include "braid/launch/rank_life.h"
#include "braid/launch/rank_outcome.h"
#include "braid/launch/supervisor.h"
#include "braid/spec/rank_hosts.h"

namespace braid {
namespace {

static_assert(HostsLauncher::kMostReturned < control::kMaxBroadcastBytes);  // leaves space for other message fields

// Returns the maximum age of node 0's samples of other nodes' ranks. It is a heartbeat interval, a sample interval, and
// half a sample interval of delay.
double report_seconds(double heartbeat_seconds) {
  return control::Heartbeat::kInterval * heartbeat_seconds + 1.5 * launch::Supervisor::kSignSeconds;
}

}  // namespace

HostsLauncher::HostsLauncher(launch::JobRounds& rounds, Options options)
    : rounds_(rounds), options_(std::move(options)) {
  if (options_.host_of_rank.empty()) options_.host_of_rank = options_.node_of_rank;
}

std::vector<std::string> HostsLauncher::run(int num_ranks, const Body& body, const LaunchOptions& options) const {
  check(num_ranks == static_cast<int>(options_.node_of_rank.size()), "every rank of the world has a node");
  const double begin = now_seconds();
  const auto collective_nodes = spec::collective_nodes(options_.host_of_rank, options.ranks_per_node);
  rounds_.begin();
  comm::RankBoard board(static_cast<int>(std::ranges::count(options_.node_of_rank, rounds_.node())));
  const double progress_seconds =
      options.progress_seconds > 0 ? options.progress_seconds + report_seconds(options_.heartbeat_seconds) : 0;
  launch::NodeAgent node(rounds_, board, options_.node_of_rank, progress_seconds);
  try {
    launch::refuse_what_cannot_fork(board.num_ranks());
  } catch (const ConfigError& error) {
    launch::send_refusal(rounds_, error.what());
    rounds_.end();
    throw;
  }
  const Body checked_body = [&](Communicator& world) {
    std::string value = body(world);
    check(value.size() <= kMostReturned, "a rank of several hosts returns at most 60 MiB");
    return value;
  };
  launch::flush_all();
  std::string left_behind;
  {
    launch::SignalRelay signals(launch::relayed(options.signals));
    launch::Supervisor supervisor({board, board, signals, node}, {options.grace_seconds});
    for (int place = 0; place < board.num_ranks(); ++place) {
      const int rank = node.ranks_here()[static_cast<size_t>(place)];
      // An exception that left this function would unwind into the parent's code.
      supervisor.start(rank, [&](int line) noexcept {
        std::signal(SIGTTOU, SIG_IGN);  // a terminal with `stty tostop` stops background processes that write to it
        launch::StoreOverStream store(line);
        const auto make_world = [&](Queue& queue) {
          const comm::WorldOptions world{.self = {.rank = rank,
                                                  .size = num_ranks,
                                                  .failures = &board,
                                                  .deadline_seconds = options.deadline_seconds,
                                                  .sums = options.sums,
                                                  .activity = &board.activity(place),
                                                  .node_of_rank = collective_nodes,
                                                  .host_of_rank = options_.host_of_rank},
                                         .store = &store,
                                         .prefix = cat("round ", rounds_.number(), " "),
                                         .address = options_.address};
          return launch::make_world(options_.engine, world, queue);
        };
        store.leave(launch::run_rank(board, rank, board.num_ranks(), make_world, checked_body, options));
      });
    }
    supervisor.run();
    left_behind = supervisor.left_behind();
  }
  rounds_.end();
  if (const auto failure = node.failure()) {
    launch::throw_error_of({"a run on several hosts", *failure, now_seconds() - begin, left_behind}, node.outcomes());
  }
  std::vector<std::string> values;
  for (const std::string& outcome : node.outcomes()) values.push_back(launch::RankOutcome::value(outcome));
  return values;
}

std::vector<std::string> LoopbackLauncher::run(int num_ranks, const Body& body, const LaunchOptions& options) const {
  control::JoinOptions alone;
  alone.self = {"this host", num_ranks};
  const auto control = control::join_job(alone);
  launch::JobRounds rounds(*control, options.progress_seconds);
  return HostsLauncher(rounds, {.node_of_rank = std::vector<int>(num_ranks), .address = "127.0.0.1", .engine = engine_})
      .run(num_ranks, body, options);
}

std::vector<int> nodes_of_ranks(const std::vector<control::JobNode>& nodes) {
  std::vector<int> node_of_rank;
  for (size_t node = 0; node < nodes.size(); ++node) {
    node_of_rank.insert(node_of_rank.end(), static_cast<size_t>(nodes[node].num_ranks), static_cast<int>(node));
  }
  return node_of_rank;
}

}  // namespace braid
