// The pass that a block runs.
#pragma once

namespace braid {

enum class Phase { Forward, Backward };

}  // namespace braid
