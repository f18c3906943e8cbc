// The arguments of a collective that all ranks of a group must agree on, and their text. The same for every backend.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

#include "braid/comm/communicator.h"

namespace braid::comm {

enum class CallKind { AllReduce, ReduceScatter, AllGather, AllToAll, Broadcast, Barrier, Split, Share };

struct Call {
  CallKind kind = CallKind::Barrier;
  ReduceOp op = ReduceOp::Sum;
  int root = 0;  // of broadcast and share
  at::ScalarType type = at::kByte;
  int64_t chunk = 0;  // elements: of the whole tensor (all_reduce, broadcast), else of one rank's chunk

  bool operator==(const Call&) const = default;
};

// "all_reduce(Float[100], sum)".
std::string text(const Call& call);
// "all_reduce".
std::string name_of(CallKind kind);

}  // namespace braid::comm
