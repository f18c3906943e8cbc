// The channel of ranks that are processes, over their transport. Messages between endpoints of one rank are not copied.
#pragma once

#include <memory>
#include <vector>

#include "braid/comm/channel.h"
#include "braid/comm/transport/progress_engine.h"

namespace braid::comm::transport {

// Returns this rank's endpoints of a channel, in the order of their numbers. `rank_of` has the rank of `group` that has
// each endpoint; -1: none has it, and it counts as closed. REQUIRES: `group` is used for nothing else.
//
// The endpoints are those of Communicator::make_channels().
std::vector<std::unique_ptr<Channel>> make_transport_channels(std::shared_ptr<ProgressEngine> engine,
                                                              std::shared_ptr<const Group> group,
                                                              const std::vector<int>& rank_of);

}  // namespace braid::comm::transport
