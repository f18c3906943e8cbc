// The pass that a block runs.
#pragma once

namespace braid::param {

enum class Phase { Forward, Backward };

}  // namespace braid::param
