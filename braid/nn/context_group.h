// The ranks that have parts of each sequence's tokens, as attention uses them.
#pragma once

#include "braid/comm/communicator.h"

namespace braid::nn {

// The way in which queries meet the keys of other ranks.
enum class RingKeys {
  GoAround,  // a rank has the keys of one other at a time
  Gathered,  // a rank gathers the keys of all, in backward again
};

// The context axis: its ranks have equal parts of each sequence's tokens, in order. Attention exchanges tokens for
// heads first, then meets the keys of other ranks.
struct ContextGroup {
  Communicator* ranks = nullptr;     // all; null: one rank, which has all tokens
  Communicator* exchange = nullptr;  // ranks of neighbouring parts, which exchange tokens for heads; null: none
  Communicator* ring = nullptr;      // ranks that have parts of the same heads after the exchange; null: none
  RingKeys keys = RingKeys::GoAround;
};

}  // namespace braid::nn
