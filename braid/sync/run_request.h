// A rank's request to the whole run.
#pragma once

namespace braid::sync {

// A request for the time after a step, in ascending strength. The strongest request of all ranks is granted.
enum class RunRequest { GoOn, Save, Stop };

}  // namespace braid::sync
