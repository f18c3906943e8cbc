// Finds the problems of a job in the hellos that node 0 has received, and states them as sentences.
#pragma once

#include <string>
#include <vector>

#include "braid/control/job_message.h"

namespace braid::control {

struct ReceivedHello {
  JobHello hello;
  std::string from;  // numeric address of the sender
};

// Compares the hellos of all members with node 0's. Returns one sentence for each problem; none if all nodes fit.
// Problems are:
// * a differing protocol, number of nodes, engine or setting, with both values. If the commands differ, only the
//   setting "command = ..." is compared.
// * a node number that is out of range, or that several nodes have.
// * a number of ranks that differs from `ranks_of_nodes`, which is by node, or empty for any number.
std::vector<std::string> join_problems(const JobHello& root, const std::vector<int>& ranks_of_nodes,
                                       const std::vector<ReceivedHello>& others);
// Returns the numbers of the nodes that have not sent a hello.
std::vector<int> missing_nodes(int num_nodes, const std::vector<ReceivedHello>& others);
// Returns "nodes 3, 5". REQUIRES: `nodes` is not empty.
std::string nodes_text(const std::vector<int>& nodes);
// Returns "nodes 3, 5 did not come within 60 s". REQUIRES: `missing` is not empty.
std::string missing_sentence(const std::vector<int>& missing, double seconds);

}  // namespace braid::control
