#include "braid/search/layout_point.h"

#include "braid/base/text.h"
#include "braid/spec/fields.h"

namespace braid {

bool same_work(const LayoutPoint& a, const LayoutPoint& b) {
  return a.pipe == b.pipe && a.data == b.data && a.tensor == b.tensor && a.microbatch == b.microbatch &&
         a.recompute == b.recompute && a.cut == b.cut;
}

RunSpec with_layout(const RunSpec& run, const LayoutPoint& layout) {
  RunSpec spec = run;
  spec.mesh.pipe = layout.pipe;
  spec.mesh.data = layout.data;
  spec.mesh.tensor = layout.tensor;
  spec.train.microbatch = layout.microbatch;
  spec.pipeline.schedule = layout.schedule->name;
  spec.pipeline.chunks = layout.chunks;
  if (layout.cut == CutChoice::Even) spec.pipeline.partition = "even";
  spec.sync.zero = layout.zero;
  spec.sync.zero_group = layout.zero_group;
  if (layout.recompute == RecomputeChoice::ByStage) {
    spec.memory.recompute = word(RecomputeChoice::None);
  } else if (layout.recompute != RecomputeChoice::AsGiven) {
    spec.memory.recompute = word(layout.recompute);
  }
  return spec;
}

const std::vector<std::string>& layout_keys() {
  static const std::vector<std::string> kKeys = {
      "mesh.pipe",       "mesh.data", "mesh.tensor",     "train.microbatch", "pipeline.schedule",
      "pipeline.chunks", "sync.zero", "sync.zero_group", "memory.recompute", "pipeline.partition"};
  return kKeys;
}

std::vector<std::string> overrides(const RunSpec& run, const RunSpec& spec) {
  std::vector<std::string> all;
  for (const std::string& key : layout_keys()) {
    const Field& field = *find_field(key);
    if (const std::string value = value_text(field, spec); value != value_text(field, run)) {
      all.push_back(cat(key, "=", value));
    }
  }
  return all;
}

}  // namespace braid
