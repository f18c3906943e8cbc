// Which features combine: the one table of what is supported, refused, or means something else together.
// It knows features as on or off; rules about their values are in problems.h.
#pragma once

#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid {

enum class Feature {
  Gpipe,          // mesh.pipe > 1, pipeline.schedule "gpipe"
  OneFOneB,       // mesh.pipe > 1, pipeline.schedule "1f1b"
  TiedEmbedding,  // model.output_weights "tied"
  Clipping,       // optimizer.clip_norm > 0
  Dropout,        // model.dropout > 0
  Data,           // mesh.data > 1
  Context,        // mesh.context > 1
  Expert,         // mesh.expert > 1
  Tensor,         // mesh.tensor > 1
  Reproducible,   // train.reduction "reproducible"
};
inline constexpr int kNumFeatures = 10;

enum class Verdict { Supported, Refused, ChangesSemantics };

struct Combination {
  Feature a, b;  // equal: the feature by itself
  Verdict verdict;
  std::string why;  // why it is refused, how it changes semantics, or what makes it work
};

// "1F1B pipeline".
std::string text(Feature feature);
// The key that switches it, "mesh.pipe".
std::string key(Feature feature);

// The rows of the table that have something to say; every other pair is supported.
const std::vector<Combination>& combinations();
// The verdict on a pair, in either order.
Combination combination(Feature a, Feature b);

// The features of a run that are on.
std::vector<Feature> features(const RunSpec& spec);
// What the run should know of its combinations that change semantics, one sentence each.
std::vector<std::string> notes(const RunSpec& spec);

}  // namespace braid
