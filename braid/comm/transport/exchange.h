// A round of a collective as data: what this rank sends to and receives from each member, exchange after exchange.
#pragma once

#include <functional>
#include <vector>

#include "braid/comm/transport/collective.h"

namespace braid::comm::transport {

struct Transfer {
  int member;
  Collective::Bytes bytes;
};

// Transfers between two members match in their order.
struct Exchange {
  std::vector<Transfer> receives, sends;
  std::function<void()> then = nullptr;  // called once all receives are done, before the next exchange is sent
  bool awaits_sends = false;             // then() also waits for the sends, because it overwrites their memory
};

// Returns the bytes of scratch memory that a round needs.
int64_t direct_scratch_bytes(const Collective& collective);

// Returns the exchanges of a round in which each member sends to all others (the table in collective.h). `scratch` has
// direct_scratch_bytes(). REQUIRES: the collective outlives the result.
std::vector<Exchange> direct_exchanges(const Collective& collective, const Collective::Stretch& stretch,
                                       std::byte* scratch);

}  // namespace braid::comm::transport
