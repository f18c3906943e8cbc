// One line for each value of sync.compression.
#include "braid/sync/reducers/make_reducer.h"

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/sync/reducers/block_codecs.h"
#include "braid/sync/reducers/gather_reducer.h"
#include "braid/sync/reducers/late_reducer.h"
#include "braid/sync/reducers/narrow_reducer.h"
#include "braid/sync/reducers/node_reducer.h"
#include "braid/sync/reducers/plain_reducer.h"
#include "braid/sync/reducers/power_sgd_reducer.h"
#include "braid/sync/reducers/top_k_codec.h"

namespace braid::sync {
namespace {

std::unique_ptr<GradReducer> compressed(const SyncSpec& spec, Communicator& group, uint64_t seed) {
  const auto gather = [&](std::unique_ptr<Codec> codec) {
    return std::make_unique<GatherReducer>(group, std::move(codec));
  };
  switch (spec.compression) {
    case CompressionKind::None:
      break;
    case CompressionKind::BFloat16:
      return std::make_unique<NarrowReducer>(group, WireType::BFloat16);
    case CompressionKind::Float16:
      return std::make_unique<NarrowReducer>(group, WireType::Float16);
    case CompressionKind::TopK:
      return gather(std::make_unique<TopKCodec>(spec.compression_fraction));
    case CompressionKind::OneBit:
      return gather(std::make_unique<OneBitCodec>());
    case CompressionKind::EightBit:
      return gather(std::make_unique<EightBitCodec>());
    case CompressionKind::PowerSgd:
      return std::make_unique<PowerSgdReducer>(group, spec.compression_rank, seed);
  }
  return std::make_unique<PlainReducer>(group);
}

std::unique_ptr<GradReducer> over(const SyncSpec& spec, Communicator& group, uint64_t seed) {
  auto plain = std::make_unique<PlainReducer>(group);
  if (spec.compression == CompressionKind::None || group.size() == 1) return plain;
  auto chosen = compressed(spec, group, seed);
  if (spec.compression_start == 0) return chosen;
  return std::make_unique<LateReducer>(std::move(plain), std::move(chosen), spec.compression_start);
}

}  // namespace

std::unique_ptr<GradReducer> make_reducer(const SyncSpec& spec, ReducerPlace place) {
  if (!place.nodes) return over(spec, place.replicas, place.seed);
  auto across = over(spec, *place.nodes->across, place.seed);
  return std::make_unique<NodeReducer>(std::move(*place.nodes), std::move(across));
}

}  // namespace braid::sync
