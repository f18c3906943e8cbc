// Numbers of a layout to and from the keys of a run.
#include "braid/plan/layout_point.h"

#include "braid/base/text.h"
#include "braid/spec/fields.h"

namespace braid::plan {

bool same_work(const LayoutPoint& a, const LayoutPoint& b) {
  return a.pipe == b.pipe && a.data == b.data && a.tensor == b.tensor && a.microbatch == b.microbatch &&
         a.recompute == b.recompute;
}

void set_layout(RunSpec& run, const LayoutPoint& layout) {
  run.mesh.pipe = layout.pipe;
  run.mesh.data = layout.data;
  run.mesh.tensor = layout.tensor;
  run.train.microbatch = layout.microbatch;
  run.pipeline.schedule = layout.schedule->name;
  run.pipeline.chunks = layout.chunks;
  if (layout.cut != CutChoice::AsGiven) run.pipeline.partition = "even";
  if (layout.shares != BatchSplitChoice::AsGiven) run.mesh.batch_shares = kEqualShares;
  run.sync.zero = layout.zero;
  run.sync.zero_group = layout.zero_group;
  if (layout.recompute == RecomputeChoice::ByStage) {
    run.memory.recompute = word(RecomputeChoice::None);
  } else if (layout.recompute != RecomputeChoice::AsGiven) {
    run.memory.recompute = word(layout.recompute);
  }
}

const std::vector<std::string>& layout_keys() {
  static const std::vector<std::string> kKeys = {
      "mesh.pipe", "mesh.data",       "mesh.tensor",      "train.microbatch",   "pipeline.schedule", "pipeline.chunks",
      "sync.zero", "sync.zero_group", "memory.recompute", "pipeline.partition", "mesh.batch_shares"};
  return kKeys;
}

std::vector<std::string> overrides(const RunSpec& run, const RunSpec& spec) {
  std::vector<std::string> all;
  for (const std::string& key : layout_keys()) {
    const spec::Field& field = *spec::find_field(key);
    if (const std::string value = spec::value_text(field, spec); value != spec::value_text(field, run)) {
      all.push_back(cat(key, "=", value));
    }
  }
  return all;
}

}  // namespace braid::plan
