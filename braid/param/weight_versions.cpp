// The versions of the weights, a map of flat buffers.
#include "braid/param/weight_versions.h"

#include <ATen/ops/empty_like.h>

#include <utility>

#include "braid/base/errors.h"
#include "braid/param/memory_account.h"

namespace braid::param {

WeightVersions::WeightVersions(ParamStore& store) : store_(store), versions_{{0, store.flat_data()}} {}

void WeightVersions::use(int version) {
  const auto found = versions_.find(version);
  check(found != versions_.end(), "a version of the weights that is used is kept");
  if (!store_.flat_data().is_same(found->second)) store_.bind(found->second);
}

void WeightVersions::push() {
  const auto& [version, newest] = *versions_.rbegin();
  at::Tensor copy;
  if (free_.empty()) {
    const MemoryScope scope(MemoryCategory::Parameters);
    copy = at::empty_like(newest);
  } else {
    copy = std::move(free_.back());
    free_.pop_back();
  }
  copy.copy_(newest);
  versions_.emplace(version + 1, copy);
  use(version + 1);
}

void WeightVersions::drop_before(int version) {
  while (versions_.begin()->first < version && versions_.size() > 1) {
    free_.push_back(std::move(versions_.begin()->second));
    versions_.erase(versions_.begin());
  }
}

void WeightVersions::restart() {
  use(newest());
  drop_before(newest());
  at::Tensor last = std::move(versions_.begin()->second);
  versions_.clear();
  versions_.emplace(0, std::move(last));
}

}  // namespace braid::param
