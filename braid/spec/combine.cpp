// The table of combinations and who switches what on.
#include "braid/spec/combine.h"

#include "braid/base/errors.h"

namespace braid {
namespace {

struct FeatureRow {
  Feature feature;
  const char* text;
  const char* key;
  bool (*on)(const RunSpec& spec);
};

constexpr FeatureRow kFeatures[kNumFeatures] = {
    {Feature::Gpipe, "GPipe pipeline", "pipeline.schedule",
     [](const RunSpec& spec) { return spec.mesh.pipe > 1 && spec.pipeline.schedule == "gpipe"; }},
    {Feature::OneFOneB, "1F1B pipeline", "pipeline.schedule",
     [](const RunSpec& spec) { return spec.mesh.pipe > 1 && spec.pipeline.schedule == "1f1b"; }},
    {Feature::TiedEmbedding, "tied embedding", "model.output_weights",
     [](const RunSpec& spec) { return spec.model.output_weights == "tied"; }},
    {Feature::Clipping, "gradient clipping", "optimizer.clip_norm",
     [](const RunSpec& spec) { return spec.optimizer.clip_norm > 0; }},
    {Feature::Dropout, "dropout", "model.dropout", [](const RunSpec& spec) { return spec.model.dropout > 0; }},
    {Feature::Data, "data parallelism", "mesh.data", [](const RunSpec& spec) { return spec.mesh.data > 1; }},
    {Feature::Context, "context parallelism", "mesh.context",
     [](const RunSpec& spec) { return spec.mesh.context > 1; }},
    {Feature::Expert, "expert parallelism", "mesh.expert", [](const RunSpec& spec) { return spec.mesh.expert > 1; }},
    {Feature::Tensor, "tensor parallelism", "mesh.tensor", [](const RunSpec& spec) { return spec.mesh.tensor > 1; }},
    {Feature::Reproducible, "reproducible reduction", "train.reduction",
     [](const RunSpec& spec) { return spec.train.reduction == "reproducible"; }},
};

const FeatureRow& row(Feature feature) {
  const auto& found = kFeatures[static_cast<int>(feature)];
  check(found.feature == feature, "the table of features is in the order of the enum");
  return found;
}

}  // namespace

std::string text(Feature feature) { return row(feature).text; }
std::string key(Feature feature) { return row(feature).key; }

const std::vector<Combination>& combinations() {
  using enum Feature;
  using enum Verdict;
  static const std::vector<Combination> kTable = {
      {Context, Context, Refused, "context parallelism is not built yet"},
      {Expert, Expert, Refused, "expert parallelism is not built yet"},
      {Reproducible, Tensor, ChangesSemantics,
       "reproducible reduction promises the same bits across data and pipe sizes at one mesh.tensor, not across tensor "
       "sizes"},
      {TiedEmbedding, Gpipe, Supported, "the first and the last stage add their two gradients before the update"},
      {TiedEmbedding, OneFOneB, Supported, "the first and the last stage add their two gradients before the update"},
      {TiedEmbedding, Clipping, Supported, "the norm counts the shared weight once"},
      {TiedEmbedding, Reproducible, Supported, "each use has gradients of its own, added once at the end"},
      {Clipping, Tensor, Supported, "the norm counts each element once, however many ranks hold it"},
      {Dropout, Data, Supported, "masks follow from the seed and the global microbatch, not from the rank"},
      {Dropout, Tensor, Supported, "masks lie on activations that every tensor rank holds whole"},
      {Dropout, Reproducible, Supported, "masks follow from the seed and the global microbatch, not from the rank"},
  };
  return kTable;
}

Combination combination(Feature a, Feature b) {
  for (const auto& known : combinations()) {
    if ((known.a == a && known.b == b) || (known.a == b && known.b == a)) return known;
  }
  return {a, b, Verdict::Supported, ""};
}

std::vector<Feature> features(const RunSpec& spec) {
  std::vector<Feature> on;
  for (const auto& candidate : kFeatures) {
    if (candidate.on(spec)) on.push_back(candidate.feature);
  }
  return on;
}

std::vector<std::string> notes(const RunSpec& spec) {
  std::vector<std::string> sentences;
  const auto on = features(spec);
  for (size_t i = 0; i < on.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const auto pair = combination(on[j], on[i]);
      if (pair.verdict == Verdict::ChangesSemantics) sentences.push_back(pair.why);
    }
  }
  return sentences;
}

}  // namespace braid
