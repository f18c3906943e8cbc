// Cutting blocks into stages.
#include "braid/spec/partition.h"

#include "braid/base/errors.h"

namespace braid {

std::vector<int> stage_layers(const RunSpec& spec, int stages) {
  const int layers = spec.model.layers;
  if (!spec.pipeline.layers.empty()) return spec.pipeline.layers;
  check(stages >= 1 && layers >= stages, "every stage has a block to hold");
  std::vector<int> held(stages, layers / stages);
  const int remainder = layers % stages;
  // Stages 1, 2, ... stages - 2, then 0.
  for (int i = 0; i < remainder; ++i) ++held[i + 1 < stages - 1 ? i + 1 : 0];
  return held;
}

}  // namespace braid
