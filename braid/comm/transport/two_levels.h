// Hierarchical collectives, for groups that span nodes. With m members on each of q nodes, 1/m of the bytes that
// members exchange directly cross between nodes. The member with place p on node h:
//
//   all_reduce       inside   reduce-scatter of m parts of the stretch        this rank's part, of node h's members
//                    across   reduce-scatter of the part's q shares           this rank's share, of all members
//                    across   all-gather of the shares                        the part
//                    inside   all-gather of the parts                         the stretch
//   reduce_scatter   inside   sums the chunks of the members with place p     q chunks, of node h's members
//                    across   reduce-scatter of the chunks                    its own chunk
//   all_gather       both     the chunks of its node and of its place
//                    inside   the chunks that the others have from other nodes
//
// inside: between the members of a node; across: between members with the same place.
//
// Sums of 16 bits cross as float32, so that they are rounded once. With two members on a node a reduce_scatter of them
// would send as much as members that exchange directly, so these do. Before the first round, all members send each
// other an empty message, so that a member which does not come is known to all.
#pragma once

#include <optional>
#include <vector>

#include "braid/comm/transport/exchange.h"

namespace braid::comm::transport {

// The members of a group by node. Each node has equally many, at least two.
struct NodeMembers {
  std::vector<std::vector<int>> at;  // members by node and place, in ascending order
  int node = 0, place = 0;           // of this rank
  // True if node k has members k m to k m + m - 1 and m is a power of two. Then sums node by node have the order of
  // communicator.h.
  bool keep_tree = false;

  int num_nodes() const { return static_cast<int>(at.size()); }
  int num_places() const { return static_cast<int>(at.front().size()); }
};

// Returns nothing if the group's members are not on several nodes, at least two on each and equally many.
std::optional<NodeMembers> node_members(const Group& group);

// Returns true if the call has two levels. Sums have them only if they keep the tree.
bool has_two_levels(const Call& call, const NodeMembers& members);

// Returns the bytes of scratch memory that a round needs.
int64_t two_level_scratch_bytes(const Collective& collective, const NodeMembers& members);

// Returns the exchanges of round number `round`. `scratch` has two_level_scratch_bytes(). REQUIRES: the collective
// outlives the result, and has_two_levels().
std::vector<Exchange> two_level_exchanges(const Collective& collective, const NodeMembers& members, int64_t round,
                                          std::byte* scratch);

}  // namespace braid::comm::transport
