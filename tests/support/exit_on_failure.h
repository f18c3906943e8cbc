// The failure state of ranks that nobody supervises.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "braid/comm/failure_state.h"

namespace braid {

// Prints the failure and exits with 3.
class ExitOnFailure final : public comm::FailureState {
 public:
  void fail(const comm::Failure& failure) override {
    std::fprintf(stderr, "rank %d: %s\n", failure.rank, failure.why.c_str());
    std::_Exit(3);
  }
  std::optional<comm::Failure> failure() const override { return std::nullopt; }
};

}  // namespace braid
