// The memory of attention whose sequences context ranks share (nn/ring_attention.h, nn/head_exchange.h).
#pragma once

#include "braid/plan/run_layout.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// All are bytes, and 0 without context ranks.
struct ContextMemory {
  double kept = 0;     // that each attention keeps beside queries, keys and values: its outputs before they move back
  double again = 0;    // that its second run under selective recompute has, beside its outputs in their order
  double working = 0;  // at most in its backward, with the gradient that comes in
};
ContextMemory context_memory(const RunSpec& spec, const RunLayout& layout);

}  // namespace braid::plan
