// Several versions of a store's weights, for schedules that update while microbatches are in flight. Each version owns
// its storage, so that writing the newest does not affect a graph built on an older one. Two simpler ways would fail:
// writing in place changes the older graph's weights, and a leaf pointed at other memory gives backward the new weights
// without an error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "braid/param/param_store.h"

namespace braid::param {

class WeightVersions {
 public:
  // Makes the weights of `store` version 0. REQUIRES: `store` outlives this.
  explicit WeightVersions(ParamStore& store);

  int newest() const { return versions_.rbegin()->first; }
  int num_live() const { return static_cast<int>(versions_.size()); }
  // Makes `version` the data of the store's parameters. check() fails if it has been dropped.
  void use(int version);
  // Makes version newest() + 1, a copy of the newest in storage of its own, for the optimizer to change in place. The
  // store uses it.
  void push();
  // Drops the versions below `version`, but never the newest. Later versions reuse their memory. REQUIRES: no
  // microbatch in flight uses a dropped version.
  void drop_before(int version);
  // Keeps only the newest version and renumbers it 0. Called between steps.
  void restart();

 private:
  ParamStore& store_;
  std::map<int, at::Tensor> versions_;
  std::vector<at::Tensor> free_;
};

}  // namespace braid::param
