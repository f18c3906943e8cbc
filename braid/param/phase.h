// Which way a block is run.
#pragma once

namespace braid {

enum class Phase { Forward, Backward };

}  // namespace braid
