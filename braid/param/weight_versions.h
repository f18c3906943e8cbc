// Versions of a store's weights side by side, for schedules that update while microbatches are in flight. Each version
// owns its storage: writing the newest never reaches a graph that was built on an older one (an in-place write under a
// leaf would, and a leaf that is pointed elsewhere would hand backward the new weights without an error).
// It knows no schedule: whoever calls says which version when.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "braid/param/param_store.h"

namespace braid {

class WeightVersions {
 public:
  // Version 0 is what `store`, which outlives this, holds.
  explicit WeightVersions(ParamStore& store);

  int newest() const { return versions_.rbegin()->first; }
  int num_live() const { return static_cast<int>(versions_.size()); }
  // The store's parameters are those of `version`, which is kept (check).
  void use(int version);
  // Version newest() + 1, a copy of the newest in storage of its own, for the optimizer to change in place.
  void push();
  // Forgets the versions below `version`; their memory serves later ones. Nothing in flight may use them.
  void drop_before(int version);
  // The newest alone, as version 0: between steps.
  void restart();

 private:
  ParamStore& store_;
  std::map<int, at::Tensor> versions_;
  std::vector<at::Tensor> free_;
};

}  // namespace braid
