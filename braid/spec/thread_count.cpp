// A thread is woken for every operation, so the size of an operation decides, not that of the model.
#include "braid/spec/thread_count.h"

#include <algorithm>

namespace braid::spec {
namespace {

// The least FLOPs per thread of a product of model.width x model.width, forward: with fewer a thread takes longer to
// wake than it saves (bench/threads).
constexpr double kFlopsPerThread = 16e6;

int threads_with_work(const ModelSpec& model, double tokens, int limit) {
  const double flops = 2 * tokens * model.width * model.width;
  return std::clamp(static_cast<int>(std::min(flops / kFlopsPerThread, 1e6)), 1, std::max(1, limit));
}

}  // namespace

int threads_per_rank(const RunSpec& spec, int cores) {
  if (spec.train.threads > 0) return spec.train.threads;
  if (spec.train.reduction == Reduction::Reproducible) return 1;
  const double tokens = static_cast<double>(spec.train.microbatch) * spec.model.context / spec.mesh.tensor;
  return threads_with_work(spec.model, tokens, static_cast<int>(cores / num_ranks(spec.mesh)));
}

int threads_to_generate(const ModelSpec& model, int cores) { return threads_with_work(model, model.context, cores); }

}  // namespace braid::spec
