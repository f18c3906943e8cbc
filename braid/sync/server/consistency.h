// What a parameter server promises about the age of what workers read (docs/parameter_server.md).
#pragma once

#include "braid/spec/sync_spec.h"

namespace braid {

// What a bulk synchronous server does without a worker that closed its channel or is silent beyond the deadline.
enum class OnRankFailure { Fail, Continue };

}  // namespace braid
