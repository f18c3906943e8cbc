// Calls of ranks whose world fails, and the failure that they throw.
#pragma once

#include <functional>
#include <string_view>

#include "braid/base/errors.h"
#include "braid/comm/op_name.h"
#include "tests/comm/conformance.h"
#include "tests/comm/values.h"

namespace braid::comm::tests {

inline at::Tensor zeros(int64_t count) { return empty<float>(count).zero_(); }

inline Work message(Communicator& group, P2p::Kind kind, int peer, const at::Tensor& tensor, int tag = 9) {
  const P2p one{kind, tensor, peer, tag};
  return group.batch({&one, 1});
}

// Returns what it throws, or fails an expectation.
inline CommFailure failure_in(const std::function<void()>& run) {
  try {
    run();
  } catch (const CommError& error) {
    return error.failure();
  }
  ADD_FAILURE() << "no CommError";
  return {};
}

inline CommFailure failure_on(const Backend& backend, int num_ranks, const std::function<void(Communicator&)>& body) {
  return failure_in([&] { backend.run(num_ranks, body); });
}

// Sums a tensor for the op `name`. All tensors are alike, so only the names tell the calls apart.
inline void sum_for(Communicator& group, std::string_view name) {
  const CallName calls(name);
  group.all_reduce(empty<float>(8).zero_(), ReduceOp::Sum).wait_host();
}

}  // namespace braid::comm::tests
