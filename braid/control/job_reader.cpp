// Checks in this order: structure and limits (job_message.h), numbers of nodes (here), contents (the validator).
#include "braid/control/job_reader.h"

#include <exception>

#include "braid/base/text.h"

namespace braid::control {
namespace {

template <class Read>
ReadMessage without_throwing(const Read& read) {
  try {
    return read();
  } catch (const std::exception& error) {
    return {{}, cat("has sent what cannot be handled: ", error.what())};
  }
}

}  // namespace

ReadMessage JobReader::from_member(int node, std::string_view bytes) const {
  return without_throwing([&] { return read_from_member(node, bytes); });
}

ReadMessage JobReader::from_root(std::string_view bytes) const {
  return without_throwing([&] { return read_from_root(bytes); });
}

ReadMessage JobReader::read_from_member(int node, std::string_view bytes) const {
  auto message = parse_job_message(bytes);
  if (!message) return {{}, "has sent what is no message"};
  if (auto* word = std::get_if<JobBroadcastRequest>(&*message)) {
    return validated({JobEvent::Kind::Broadcast, node, std::move(word->bytes)});
  }
  auto* beat = std::get_if<JobHeartbeat>(&*message);
  if (!beat) return {{}, "has sent a message that only node 0 sends"};
  if (!beat->progress) return {};
  return validated({JobEvent::Kind::Progress, node, std::move(*beat->progress)});
}

ReadMessage JobReader::read_from_root(std::string_view bytes) const {
  auto message = parse_job_message(bytes);
  if (!message) return {{}, "has sent what is no message"};
  if (std::holds_alternative<JobHeartbeat>(*message)) return {};
  JobEvent event;
  if (auto* said = std::get_if<JobBroadcast>(&*message)) {
    event = {JobEvent::Kind::Broadcast, said->node, std::move(said->bytes)};
  } else if (auto* loss = std::get_if<NodeFailure>(&*message)) {
    event = {JobEvent::Kind::Lost, loss->node, std::move(loss->why)};
  } else {
    return {{}, "has sent a message that is not node 0's"};
  }
  if (!is_node(event.node)) return {{}, cat("has named node ", event.node, " of ", num_nodes_, " nodes")};
  ReadMessage read = validated(std::move(event));
  if (!read.fault.empty()) read.fault = cat("has relayed a message of node ", event.node, ", which ", read.fault);
  return read;
}

ReadMessage JobReader::validated(JobEvent event) const {
  std::string fault;
  if (validator_ && event.kind != JobEvent::Kind::Lost) fault = validator_(event);
  if (!fault.empty()) return {{}, std::move(fault)};
  return {std::move(event), ""};
}

std::string table_problem(const JobTable& table, const JoinOptions& options) {
  const size_t num_nodes = static_cast<size_t>(options.num_nodes);
  if (table.nodes.size() != num_nodes) {
    return cat("has sent a table of ", table.nodes.size(), " nodes, of which there are ", num_nodes);
  }
  const JobNode& self = table.nodes[static_cast<size_t>(options.node)];
  if (self.host != options.self.host || self.num_ranks != options.self.num_ranks) {
    return cat("has sent a table in which node ", options.node, " is not itself");
  }
  for (size_t node = 0; node < options.ranks_of_nodes.size(); ++node) {
    if (table.nodes[node].num_ranks == options.ranks_of_nodes[node]) continue;
    return cat("has sent a table in which node ", node, " starts ", table.nodes[node].num_ranks, " ranks, not ",
               options.ranks_of_nodes[node]);
  }
  return "";
}

}  // namespace braid::control
