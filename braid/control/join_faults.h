// What stands in the way of a job whose nodes have said hello to node 0, in sentences.
#pragma once

#include <string>
#include <vector>

#include "braid/control/job_message.h"

namespace braid {

struct HeardHello {
  JobHello hello;
  std::string from;  // its numeric address
};

// Of what all others have said, against what node 0 says of itself: other protocols, numbers of nodes, engines and
// settings, with both values (those that begin with "command = ...": of other commands that alone), other numbers of
// ranks than `ranks_of_nodes` has, by node, where it has any, numbers that there are not, and nodes that are there
// twice. Empty: whoever has come fits.
std::vector<std::string> join_faults(const JobHello& root, const std::vector<int>& ranks_of_nodes,
                                     const std::vector<HeardHello>& others);
// The numbers of those who have not come.
std::vector<int> missing_nodes(int num_nodes, const std::vector<HeardHello>& others);
// "nodes 3, 5", of which there is one or more.
std::string nodes_text(const std::vector<int>& nodes);
// "nodes 3, 5 did not come within 60 s". `missing` is not empty.
std::string missing_sentence(const std::vector<int>& missing, double seconds);

}  // namespace braid
