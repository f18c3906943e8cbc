// With q, kv: bytes of queries, and of keys or values, of a rank's tokens (of the rank with most heads, where these do
// not divide), and w: bytes of the computing type for each byte (2 if 16-bit types are computed in float32, else 1),
// backward of n ranks' blocks has at most
//
//   the gradient of the outputs, and in its place of the ring    q + w q
//   widened queries and outputs, if w > 1                        2 w q
//   the gradient of queries                                      w q
//   keys and values of other ranks                               2 kv (n = 2), 4 kv; gathered 2 n kv; + 2 w kv if w > 1
//   their gradients: so far, on the way, own                     6 w kv; gathered 2 n w kv
//   the gradients of a block: half the queries, keys, values     w (q / 2 + kv)
//
// Ranks that exchange tokens for heads also have the gradient of the outputs before its exchange, q. Without a ring
// they have it after the exchange, and the gradients of queries, keys and values twice: q + 2 (q + 2 kv).
#include "braid/plan/context_memory.h"

#include <algorithm>

#include "braid/plan/block_sizes.h"
#include "braid/plan/block_work.h"
#include "braid/spec/context_rules.h"

namespace braid::plan {
namespace {

double ring_working(double q, double kv, double w, const RunSpec& spec) {
  const int ranks = spec::ring_ranks(spec);
  if (ranks == 1) return 0;
  const bool gathered = spec.mesh.context_parallel == ContextParallel::AllGather;
  const double widened = w > 1 ? 2 * w * q + 2 * w * kv : 0;
  const double keys = gathered ? 2 * ranks * kv : ranks == 2 ? 2 * kv : 4 * kv;
  const double their_gradients = gathered ? 2 * ranks * w * kv : 6 * w * kv;
  return q + 2 * w * q + widened + keys + their_gradients + w * (q / 2 + kv);
}

}  // namespace

ContextMemory context_memory(const RunSpec& spec, const RunLayout& layout) {
  if (layout.context == 1) return {};
  const BlockSizes z(spec.model, layout.tensor);
  const double element = element_bytes(spec.train.dtype), of_row = element * layout.tokens / layout.tensor;
  const double most = spec::most_exchanged_heads(spec), q = most * of_row * z.q, kv = most * of_row * z.kv;
  const double more = (1 - 1 / most) * (q + 2 * kv);  // than equal parts of the heads
  double working = ring_working(q, kv, std::max(1.0, element_bytes(DType::Float32) / element), spec);
  if (working > 0 && spec::exchange_ranks(spec) > 1) working += q / most;  // the gradient before it moves to its heads
  // Gradients of exchanged queries, keys and values are copied on their way back.
  if (spec::exchange_ranks(spec) > 1) working = std::max(working, q + 2 * (q + 2 * kv));
  return {q + more, 2 * q + 2 * kv, working};
}

}  // namespace braid::plan
