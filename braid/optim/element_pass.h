// One elementwise update of the masters that a rank owns, of all parameters or of some. One fused pass does clipping,
// states, decay, update and rounding, and reads and writes each element once. The caller counts the steps.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "braid/optim/chunked_pass.h"
#include "braid/optim/element_rule.h"
#include "braid/optim/optimizer.h"
#include "braid/optim/parameter_groups.h"
#include "braid/optim/stochastic_rounding.h"

namespace braid::optim {

// Selects the parameters to update. An empty filter selects all.
using ParamFilter = std::function<bool(const param::Parameter&)>;

// Returns this rank's shards of the parameters that `takes` selects. Stretches are as long as possible, and their
// places in the state are consecutive.
std::vector<StateStretch> owned_stretches(const param::ParamStore& store, const ParamFilter& takes);
// Returns a state of zeros for the elements of `stretches`, on store.disk() if there is one.
OptimizerState zeros_of(const std::string& name, const std::vector<StateStretch>& stretches,
                        const param::ParamStore& store, at::ScalarType type);

class ElementPass {
 public:
  // REQUIRES: `groups` and `store` outlive this. States of fewer bits are on the CPU; if they have 8, each parameter
  // has whole blocks (mesh/element_blocks.h).
  ElementPass(const ElementRule& rule, const ParameterGroups& groups, param::ParamStore& store,
              const ParamFilter& takes = {});

  std::vector<OptimizerState> zero_states() const;
  // Runs update `number`, counted from 1. REQUIRES: `states` are like those of zero_states(), in the same order, and
  // the same in every call.
  void run(const OptimizerStep& step, int64_t number, std::span<const OptimizerState> states);

  // The same in parts, if states or masters are on a disk: begin(), any number of advance(), finish(). advance()
  // updates what it can of the elements from `place` of the states on, whose gradients are final. They throw RunError
  // if the disk fails. A finished PassMode::Speculative leaves the old states on disk until keep(), and those of
  // weights in memory until the next one. PassMode::Undo restores the weights in memory and ignores `step`. REQUIRES:
  // store.disk() is not null, and has two copies for all modes but PassMode::InPlace.
  void begin(const OptimizerStep& step, int64_t number, std::span<const OptimizerState> states,
             PassMode mode = PassMode::InPlace);
  void advance(int64_t place) {
    if (on_disk_) on_disk_->advance(place);
  }
  void finish() {
    if (on_disk_) on_disk_->finish();
  }
  void keep() {
    if (on_disk_) on_disk_->keep();
  }

 private:
  template <class T>
  struct Places;  // of the first element of a stretch: its master, gradient, states and rounded data
  // Calls call(factors of each parameter group) with the types of the rule and of the masters.
  template <class Call>
  void with_factors(const OptimizerStep& step, int64_t number, const Call& call) const;
  template <class T>
  Places<T> in_memory(const StateStretch& stretch, std::span<const OptimizerState> states) const;
  template <class T>
  Places<T> in_chunk(const StateStretch& stretch, const Chunk& chunk) const;
  template <class Factors>
  void update(const StateStretch& stretch, const std::vector<Factors>& of_groups,
              const Places<typename Factors::Number>& places) const;
  template <class T>
  void restore(const StateStretch& stretch, const Places<T>& places) const;
  bool backs_up() const;
  void open_disk(std::span<const OptimizerState> states);

  const ElementRule rule_;
  const ParameterGroups& groups_;
  param::ParamStore& store_;
  const std::vector<StateStretch> stretches_;
  std::optional<StochasticRounding> rounding_;  // of states in bfloat16
  std::unique_ptr<ChunkedPass> on_disk_;        // over what is on disk; null: nothing is, or no step was made
  at::Tensor groups_on_device_;                 // groups.of_blocks() on the store's device; undefined on the CPU
};

}  // namespace braid::optim
