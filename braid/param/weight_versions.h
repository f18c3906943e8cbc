// Versions of a store's weights side by side, for schedules that update while microbatches are in flight. Each version
// owns its storage, so that writing the newest never reaches a graph that was built on an older one. (Writing in place
// would; and a leaf that is pointed at other memory would give backward the new weights without an error.)
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "braid/param/param_store.h"

namespace braid::param {

class WeightVersions {
 public:
  // Version 0 is what `store`, which outlives this, holds.
  explicit WeightVersions(ParamStore& store);

  int newest() const { return versions_.rbegin()->first; }
  int num_live() const { return static_cast<int>(versions_.size()); }
  // Makes `version` the data of the store's parameters. check() fails when it has been dropped.
  void use(int version);
  // Version newest() + 1, a copy of the newest in storage of its own, for the optimizer to change in place.
  void push();
  // Forgets the versions below `version`, which nothing in flight may use; later versions reuse their memory.
  void drop_before(int version);
  // Keeps the newest alone and calls it version 0. Between steps.
  void restart();

 private:
  ParamStore& store_;
  std::map<int, at::Tensor> versions_;
  std::vector<at::Tensor> free_;
};

}  // namespace braid::param
