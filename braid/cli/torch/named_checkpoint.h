// The checkpoint that a user means by a name: the checkpoint's own, or that of the run that wrote it.
#pragma once

#include <functional>
#include <string>

namespace braid::cli {

struct CheckpointName {
  std::string option, value;  // as the user wrote it: train.resume, "latest"
  std::string path;           // a checkpoint or the folder of a run
};

// Its folder. `on_passed_over` hears of each newer one in the run that is damaged, and why. Throws ConfigError about
// the option when there is no whole checkpoint in the run, or when the path is that of prepared data. One that cannot
// be read is returned: reading it says why.
std::string named_checkpoint(const CheckpointName& name,
                             const std::function<void(const std::string& fault)>& on_passed_over);

// The help text of an argument that names a checkpoint.
inline constexpr const char* kCheckpointMeaning =
    "a folder that braid train wrote, such as runs/quickstart/step-420; of a run's, the newest whole one in it";

// For named_checkpoint(): says on standard error that a damaged one was passed over.
void tell_passed_over(const std::string& fault);

}  // namespace braid::cli
