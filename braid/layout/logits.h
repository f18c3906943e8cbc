// The limit at which a head computes its loss in chunks.
#pragma once

#include <cstdint>

namespace braid::layout {

// Most bytes of a rank's logits of a microbatch that a head keeps whole. More are computed in chunks of rows.
// In reproducible mode the limit is that of all tensor ranks' logits.
inline constexpr int64_t kMostLogitBytes = int64_t{64} << 20;

}  // namespace braid::layout
