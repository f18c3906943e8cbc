// The formulas of activation_memory.h, term by term.
#include "braid/plan/activation_memory.h"

#include <algorithm>

#include "braid/plan/block_sizes.h"
#include "braid/plan/block_work.h"

namespace braid::plan {
namespace {

constexpr double kStatistic = 4;  // bytes of a float32 number: a statistic of attention, or a logit

struct BlockBytes {
  double linear = 0;      // 34 n h
  double scores = 0;      // 5 a s n
  double input = 0;       // 2 n h
  double one_score = 0;   // one copy of the scores; 0: attention is fused
  double activation = 0;  // 16 n h / t
};

BlockBytes block_bytes(const RunSpec& spec, const RunLayout& layout) {
  const BlockSizes z(spec.model, layout.tensor);
  const double e = element_bytes(spec.train.dtype), n = layout.tokens, t = layout.tensor;
  const double whole = spec.mesh.sequence_parallel ? t : 1;
  BlockBytes bytes;
  bytes.input = e * n * z.h / whole;
  bytes.activation = e * n * z.k * (z.gated ? 3 : 2) * z.f / t;
  const double mask = spec.model.dropout > 0 ? 1 : 0;
  bytes.linear = n * (4 * e + 2 * mask) * z.h / whole + e * n * (2 * z.q + 2 * z.kv) / t + bytes.activation;
  if (z.experts > 0) bytes.linear += n * (2 * e * z.k * z.h + 4 * z.experts) / whole;
  if (!stores_scores(FormulaSet::Megatron, spec.model)) {
    bytes.linear += kStatistic * n * spec.model.heads / t;
    return bytes;
  }
  const double scores = n * spec.model.context * spec.model.heads / t;
  bytes.one_score = e * scores;
  bytes.scores = (mask > 0 ? 2 * e + 1 : e) * scores;
  return bytes;
}

}  // namespace

double saved_bytes(const RunSpec& spec, const RunLayout& layout, const spec::Recompute& recompute) {
  const BlockBytes bytes = block_bytes(spec, layout);
  switch (recompute.keeps) {
    case spec::Recompute::Keeps::Everything:
    case spec::Recompute::Keeps::Listed:
      return bytes.linear + bytes.scores;
    case spec::Recompute::Keeps::Selected:
      return bytes.linear;
    case spec::Recompute::Keeps::SegmentInputs:
      return bytes.input / recompute.blocks;
  }
  return 0;
}

double pending_bytes(const RunSpec& spec, const RunLayout& layout) {
  return block_bytes(spec, layout).linear * 32 / 34;
}

double end_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load) {
  const double e = element_bytes(spec.train.dtype), n = layout.tokens, t = layout.tensor, h = spec.model.width;
  const double whole = spec.mesh.sequence_parallel ? t : 1;
  double bytes = 0;
  if (load.embedding && spec.model.dropout > 0) bytes += n * h / whole;
  if (load.head) bytes += 2 * e * n * h / whole + kStatistic * n * static_cast<double>(layout.vocab) / t;
  return bytes;
}

double working_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load) {
  const BlockBytes bytes = block_bytes(spec, layout);
  double most = load.blocks > 0 ? std::max(2 * bytes.one_score, bytes.activation) + 2 * bytes.input : 0;
  if (load.recompute.keeps == spec::Recompute::Keeps::SegmentInputs && load.blocks > 0) {
    most += std::min<double>(load.recompute.blocks, load.blocks) * (bytes.linear + bytes.scores);
  } else if (load.recompute.keeps == spec::Recompute::Keeps::Selected && load.blocks > 0) {
    most += bytes.scores;
  }
  most += listed_counts(load).longest * (bytes.linear + bytes.scores);
  const double t = layout.tensor;
  // The loss is computed in place. The head holds logits of the run's type before the loss, and their gradient after
  // it.
  const double logits = element_bytes(spec.train.dtype) * layout.tokens * static_cast<double>(layout.vocab) / t;
  if (load.head) most = std::max(most, logits);
  return most;
}

}  // namespace braid::plan
