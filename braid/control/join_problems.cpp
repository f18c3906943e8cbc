// One sentence per fault, in the order of nodes.
#include "braid/control/join_problems.h"

#include <algorithm>
#include <map>

#include "braid/base/text.h"

namespace braid::control {
namespace {

std::string who(const JobHello& hello) { return cat("node ", hello.node, " on ", hello.self.host); }

// Returns the settings that are not in `others`, in words.
std::string without(std::vector<std::string> settings, const std::vector<std::string>& others) {
  std::erase_if(settings, [&](const std::string& one) { return std::ranges::find(others, one) != others.end(); });
  return settings.empty() ? "nothing else" : joined(settings);
}

// Returns true if the nodes run different commands, whose settings have different names.
bool runs_another(const JobHello& hello, const JobHello& root) {
  constexpr const char* kCommand = "command = ";
  const auto command = [&](const JobHello& of) {
    return !of.settings.empty() && of.settings[0].starts_with(kCommand) ? of.settings[0] : "";
  };
  return !command(hello).empty() && !command(root).empty() && command(hello) != command(root);
}

void add_own_faults(const JobHello& root, const ReceivedHello& received, std::vector<std::string>& faults) {
  const JobHello& hello = received.hello;
  if (hello.protocol != root.protocol) {
    faults.push_back(cat("a node at ", received.from, " speaks version ", hello.protocol,
                         " of the protocol, node 0 version ", root.protocol));
    return;
  }
  if (hello.num_nodes != root.num_nodes) {
    faults.push_back(cat(who(hello), ": is one of ", hello.num_nodes, " nodes, node 0 one of ", root.num_nodes));
  } else if (hello.node < 0 || hello.node >= root.num_nodes) {
    faults.push_back(cat(who(hello), ": the nodes are 0 to ", root.num_nodes - 1));
  }
  if (hello.engines != root.engines) {
    faults.push_back(cat(who(hello), ": has ", hello.engines, ", node 0 ", root.engines));
  }
  if (runs_another(hello, root)) {
    faults.push_back(cat(who(hello), ": has ", hello.settings[0], "; node 0 ", root.settings[0]));
  } else if (hello.settings != root.settings) {
    faults.push_back(cat(who(hello), ": has ", without(hello.settings, root.settings), "; node 0 ",
                         without(root.settings, hello.settings)));
  }
}

// REQUIRES: the node's number is one of the job's.
void add_ranks_fault(const std::vector<int>& ranks_of_nodes, const JobHello& hello, std::vector<std::string>& faults) {
  if (ranks_of_nodes.empty()) return;
  const int wanted = ranks_of_nodes[static_cast<size_t>(hello.node)];
  if (hello.self.num_ranks == wanted) return;
  faults.push_back(cat(who(hello), ": starts ", hello.self.num_ranks, " ranks; node 0 counts on ", wanted));
}

// "h1 and h4", "h1 twice and h4", "on h1"
std::string places(const std::vector<const JobHello*>& hellos) {
  std::map<std::pair<std::string, std::string>, int> times;
  for (const JobHello* hello : hellos) ++times[{hello->self.host, hello->boot_id}];
  if (times.size() == 1) return cat("on ", hellos[0]->self.host);
  std::vector<std::string> words;
  for (const auto& [place, count] : times) {
    words.push_back(count == 1 ? place.first : cat(place.first, count == 2 ? " twice" : cat(" ", count, " times")));
  }
  return joined(words, " and ");
}

}  // namespace

std::vector<std::string> join_problems(const JobHello& root, const std::vector<int>& ranks_of_nodes,
                                       const std::vector<ReceivedHello>& others) {
  std::map<int, std::vector<const JobHello*>> by_node{{root.node, {&root}}};
  std::vector<const ReceivedHello*> in_order;
  for (const ReceivedHello& received : others) {
    in_order.push_back(&received);
    if (received.hello.protocol == root.protocol) by_node[received.hello.node].push_back(&received.hello);
  }
  std::ranges::stable_sort(in_order, {}, [](const ReceivedHello* received) { return received->hello.node; });
  std::vector<std::string> faults;
  for (const ReceivedHello* received : in_order) {
    const size_t before = faults.size();
    add_own_faults(root, *received, faults);
    if (faults.size() == before) add_ranks_fault(ranks_of_nodes, received->hello, faults);
  }
  for (const auto& [node, hellos] : by_node) {
    if (hellos.size() < 2) continue;
    const std::string times = hellos.size() == 2 ? "twice" : cat(hellos.size(), " times");
    faults.push_back(cat("node ", node, " is there ", times, ": ", places(hellos)));
  }
  return faults;
}

std::vector<int> missing_nodes(int num_nodes, const std::vector<ReceivedHello>& others) {
  std::vector<bool> there(static_cast<size_t>(num_nodes), false);
  there[0] = true;
  for (const ReceivedHello& received : others) {
    const int node = received.hello.node;
    if (node >= 0 && node < num_nodes && received.hello.protocol == kJobProtocol) there[node] = true;
  }
  std::vector<int> missing;
  for (int node = 0; node < num_nodes; ++node) {
    if (!there[node]) missing.push_back(node);
  }
  return missing;
}

std::string nodes_text(const std::vector<int>& nodes) {
  std::vector<std::string> numbers;
  for (int node : nodes) numbers.push_back(cat(node));
  return cat(numbers.size() == 1 ? "node " : "nodes ", joined(numbers));
}

std::string missing_sentence(const std::vector<int>& missing, double seconds) {
  return cat(nodes_text(missing), " did not come within ", fixed(seconds, seconds < 10 ? 1 : 0), " s");
}

}  // namespace braid::control
