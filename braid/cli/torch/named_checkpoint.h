// Finds the checkpoint that a user names, by its own path or by the run that wrote it.
#pragma once

#include <functional>
#include <string>

namespace braid::cli {

struct CheckpointName {
  std::string option, value;  // option and value as the user wrote them: train.resume, "latest"
  std::string path;           // a checkpoint or the folder of a run
};

// Returns the folder of the checkpoint; in a run, the newest whole one. Calls `on_passed_over` with the fault of each
// newer checkpoint that is damaged. Throws ConfigError about the option if the run has no whole checkpoint, or if the
// path is that of prepared data. A named checkpoint that cannot be read is returned: reading it reports the reason.
std::string named_checkpoint(const CheckpointName& name,
                             const std::function<void(const std::string& fault)>& on_passed_over);

// The help text of an argument that names a checkpoint.
inline constexpr const char* kCheckpointMeaning =
    "a folder that braid train wrote, such as runs/quickstart/step-420; of a run's, the newest whole one in it";

// A callback for named_checkpoint(): reports on standard error that a damaged checkpoint was passed over.
void tell_passed_over(const std::string& fault);

}  // namespace braid::cli
