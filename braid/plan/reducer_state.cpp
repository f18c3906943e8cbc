// The bytes of the reducers' buffers, by kind of compression.
#include "braid/plan/reducer_state.h"

#include <algorithm>
#include <cmath>

#include "braid/plan/block_work.h"

namespace braid::plan {
namespace {

constexpr double kCodecBlock = 1024;  // elements (sync/reducers/block_codecs.h)

// Returns the bytes of messages that encode each block by itself.
double in_blocks(double count, double of_block, double of_element) {
  return std::ceil(count / kCodecBlock) * of_block + std::ceil(count * of_element);
}

ReducerBytes of_all_messages(double owed, double message, int ranks) {
  return {owed + ranks * message, ranks * message / 2};
}

ReducerBytes of_factors(double owed, double element, int asked_rank, const GradientShape& shape) {
  const double rank = std::min({static_cast<double>(asked_rank), shape.rows, shape.columns});
  const bool smaller = shape.columns > 1 && rank * (shape.rows + shape.columns) < shape.rows * shape.columns;
  const double message = element * (smaller ? rank * (shape.rows + shape.columns) : shape.rows * shape.columns);
  const double directions = element * rank * shape.columns;
  return {owed + (smaller ? 2 * message + directions : message), message};
}

}  // namespace

ReducerBytes reducer_bytes(const RunSpec& spec, const GradientShape& shape, int ranks) {
  const SyncSpec& sync = spec.sync;
  if (ranks == 1) return {};
  const double count = shape.rows * shape.columns, element = std::max(element_bytes(spec.train.dtype), 4.0);
  const double owed = element * shape.held;
  switch (sync.compression) {
    case CompressionKind::None:
      return {};
    case CompressionKind::BFloat16:
    case CompressionKind::Float16:
      return {2 * shape.held, 2 * shape.held};
    case CompressionKind::TopK:
      return of_all_messages(owed, 8 * std::max(1.0, std::ceil(sync.compression_fraction * count)), ranks);
    case CompressionKind::OneBit:
      return of_all_messages(owed, in_blocks(count, 8, 1.0 / 8), ranks);
    case CompressionKind::EightBit:
      return of_all_messages(owed, in_blocks(count, 4, 1), ranks);
    case CompressionKind::PowerSgd:
      return of_factors(owed, element, sync.compression_rank, shape);
  }
  return {};
}

}  // namespace braid::plan
