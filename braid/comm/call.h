// The arguments of a call of a communicator, the same for every backend, and their text forms.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

#include "braid/comm/communicator.h"
#include "braid/comm/op_name.h"

namespace braid::comm {

enum class CallKind { AllReduce, ReduceScatter, AllGather, AllToAll, Broadcast, Barrier, Split, Share, Send, Receive };

// All members of a group agree on the arguments of a collective. A transfer of a batch has the kind Send or Receive;
// its two sides agree on type and size.
struct Call {
  CallKind kind = CallKind::Barrier;
  ReduceOp op = ReduceOp::Sum;
  int root = 0;  // root of broadcast and share; peer of a transfer
  at::ScalarType type = at::kByte;
  int64_t chunk = 0;  // number of elements: in the whole tensor (all_reduce, broadcast, transfers), else in a chunk
  int tag = 0;        // of a transfer
  // Number of the collective among those of the rank in the group, and of a batch among its batches there; from 0.
  int64_t number = -1;
  OpName name = {};

  bool is_transfer() const { return kind == CallKind::Send || kind == CallKind::Receive; }
  bool operator==(const Call&) const = default;
};

// Returns "all_reduce".
std::string name_of(CallKind kind);
// Returns "all_reduce(Float[100], sum) for blocks.3 linear mlp.down".
std::string text(const Call& call);
// Returns "#17 all_reduce(Float[100], sum) for blocks.3 linear mlp.down", "batch #3 send(Float[8], to 1, tag 9)".
std::string numbered_text(const Call& call);
// Returns "all_reduce #17 on tensor for blocks.3 linear mlp.down".
std::string label_of(const Call& call, std::string_view group);
// Returns "transfer 0 -> 1 tag 9 on pipe in batch #3 for activations". The caller of the transfer is `rank` of the
// group.
std::string transfer_label(const Call& call, int rank, std::string_view group);

// Returns the end of the sentence "rank 2: " about a collective of which rank `peer` has made another one, or about a
// transfer whose sides differ.
std::string mismatch_text(const Call& mine, int peer, const Call& theirs, std::string_view group);

}  // namespace braid::comm
