// Whether a block runs its forward or its backward.
#pragma once

namespace braid {

enum class Phase { Forward, Backward };

}  // namespace braid
