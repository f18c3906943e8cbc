// What a parameter server promises about the age of what workers read (docs/parameter_server.md).
#pragma once

namespace braid {

enum class Consistency {
  Bsp,  // bulk synchronous: a clock's pushes are averaged and applied together; everybody waits for everybody
  Asp,  // asynchronous: a push is applied when it comes; nobody waits
  Ssp,  // stale synchronous: as Asp, but a worker at clock c reads only when the slowest is at c - staleness or later.
        // Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server" (NIPS 2013)
};

// What a bulk synchronous server does without a worker that closed its channel or is silent beyond the deadline.
enum class OnLoss { Fail, Continue };

}  // namespace braid
