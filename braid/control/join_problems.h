// Finds the problems of a job whose nodes have sent hello to node 0, as sentences.
#pragma once

#include <string>
#include <vector>

#include "braid/control/job_message.h"

namespace braid::control {

struct ReceivedHello {
  JobHello hello;
  std::string from;  // its numeric address
};

// Compares the hellos of all members with node 0's. Returns differing protocols, numbers of nodes, engines and
// settings, with both values (of another command only the setting "command = ..."), numbers of ranks other than
// `ranks_of_nodes` (by node, if not empty), node numbers out of range, and duplicates. Empty if all fit.
std::vector<std::string> join_problems(const JobHello& root, const std::vector<int>& ranks_of_nodes,
                                       const std::vector<ReceivedHello>& others);
// The numbers of those who have not come.
std::vector<int> missing_nodes(int num_nodes, const std::vector<ReceivedHello>& others);
// "nodes 3, 5", of which there is one or more.
std::string nodes_text(const std::vector<int>& nodes);
// "nodes 3, 5 did not come within 60 s". `missing` is not empty.
std::string missing_sentence(const std::vector<int>& missing, double seconds);

}  // namespace braid::control
