// A ledger of the contributions (parameter, use, micro) of a step. Each is opened and closed exactly once.
#pragma once

#include <cstdint>
#include <vector>

#include "braid/param/param_store.h"

namespace braid::param {

// Used by one thread. Opening or closing out of turn fails a check() that names parameter, use and microbatch.
class GradLedger {
 public:
  explicit GradLedger(const ParamStore& store);

  void begin_step(int num_microbatches);
  // Returns the index of `use` in param.local_uses. Two contributions to one slice may not be open at once.
  int open(const Parameter& param, int use, int micro);
  // Returns true if it was the last contribution of the step to `param`.
  bool close(const Parameter& param, int use, int micro);

  // Returns the index of `use` in param.local_uses. check() fails if no block on this rank makes that use.
  int place(const Parameter& param, int use) const;
  // Returns the slice of the use at index `place`, numbered over all slices of the rank.
  int slice(const Parameter& param, int place) const;
  int num_slices() const { return num_slices_; }

 private:
  enum class State : uint8_t { Waiting, Open, Closed };
  struct Entry {
    int first_slice = 0;
    int num_left = 0;           // number of contributions of the step that are not closed
    std::vector<State> states;  // use place x micro
  };
  State& state(const Parameter& param, int place, int micro);

  const ParamStore& store_;
  int num_microbatches_ = 0;
  int num_slices_ = 0;
  std::vector<Entry> entries_;    // by Parameter::index
  std::vector<bool> slice_open_;  // by slice
};

}  // namespace braid::param
