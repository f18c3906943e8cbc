// Agreement of all ranks of a group on small values: flags, counts, times and texts.
//
// Every function is collective, blocks, and returns the same on all ranks unless it says otherwise. `what` names the
// agreement in a few words ("request to stop"). A digest of `what` is sent with the values: if ranks pass different
// names at the same time, all of them throw CommError. Messages go over group.host(), so tensors of the run may be on
// any device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/packed.h"
#include "braid/comm/communicator.h"

namespace braid::comm {

// The types of numbers that ranks can agree on.
template <class T>
concept Agreeable = std::is_same_v<T, int64_t> || std::is_same_v<T, double>;

// Returns the combination of all ranks' numbers, element by element. All ranks pass equally many.
template <Agreeable T>
std::vector<T> agree(Communicator& group, std::string_view what, std::vector<T> mine, ReduceOp op);

template <Agreeable T>
T agree(Communicator& group, std::string_view what, T mine, ReduceOp op) {
  return agree(group, what, std::vector<T>{mine}, op)[0];
}

// Returns true if `mine` is true on any rank.
inline bool agree_any(Communicator& group, std::string_view what, bool mine) {
  return agree(group, what, int64_t{mine}, ReduceOp::Max) != 0;
}
// Returns true if `mine` is true on all ranks.
inline bool agree_all(Communicator& group, std::string_view what, bool mine) {
  return agree(group, what, int64_t{mine}, ReduceOp::Min) != 0;
}

// Returns the texts of all ranks, by rank.
std::vector<std::string> gather_texts(Communicator& group, std::string_view what, const std::string& mine);
// Returns the texts of all ranks, by rank, on rank 0, and nothing elsewhere.
std::vector<std::string> gather_texts_at_rank_0(Communicator& group, std::string_view what, const std::string& mine);
// Returns the text of rank `root`.
std::string broadcast_text(Communicator& group, std::string_view what, const std::string& mine, int root = 0);

// Same as gather_texts() and broadcast_text(), with half the messages. REQUIRES: the texts are equally long on all
// ranks.
std::vector<std::string> gather_equally_long(Communicator& group, std::string_view what, const std::string& mine);
std::string broadcast_equally_long(Communicator& group, std::string_view what, const std::string& mine, int root);

// Returns the values of all ranks, by rank. Value is a type that packed() supports.
template <class Value>
std::vector<Value> gather(Communicator& group, std::string_view what, const Value& mine) {
  const auto gathered = std::is_trivially_copyable_v<Value> ? gather_equally_long : gather_texts;
  std::vector<Value> all;
  for (const std::string& text : gathered(group, what, packed(mine))) {
    auto value = unpacked<Value>(text);
    check(value.has_value(), "all ranks pack the same type");
    all.push_back(std::move(*value));
  }
  return all;
}

// Returns the value of rank `root`.
template <class Value>
Value broadcast(Communicator& group, std::string_view what, const Value& mine, int root = 0) {
  const auto sent = std::is_trivially_copyable_v<Value> ? broadcast_equally_long : broadcast_text;
  auto value = unpacked<Value>(sent(group, what, packed(mine), root));
  check(value.has_value(), "all ranks pack the same type");
  return std::move(*value);
}

}  // namespace braid::comm
