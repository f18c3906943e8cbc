// The consistency of parameter servers: how old the parameters may be that workers read (docs/parameter_server.md).
#pragma once

#include "braid/spec/sync_spec.h"

namespace braid {

// The reaction of a bulk synchronous server to a worker that closed its channel or missed the deadline.
enum class OnRankFailure { Fail, Continue };

}  // namespace braid
