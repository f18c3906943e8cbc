// Groups slices of the flat gradients into buckets that are reduced together: pure arithmetic on a ParamStore's layout.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "braid/param/param_store.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/grad_reducer.h"

namespace braid::sync {

// Buckets in the order backward completes them, which is the reverse of the store's; extra slices of tied parameters
// come last. The first bucket is closed at `first_bucket_mb`, so that communication starts early. Only parameters that
// are `here` (null: all) have buckets: the slices of one touch, so it ends where other parameters come between.
struct BucketPlan {
  std::vector<BucketShape> buckets;
  std::unordered_map<std::string, std::vector<int>> of_param;  // the bucket of each of a parameter's slices
};
BucketPlan bucket_plan(const param::ParamStore& store, const SyncSpec& spec,
                       const std::function<bool(const param::Parameter& param)>& here = nullptr);

// The local elements that a placement's pieces cover, merged, ascending.
std::vector<ElementRun> covered_runs(const mesh::Placement& placement);

}  // namespace braid::sync
