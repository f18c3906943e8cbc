// Wording.
#include "braid/cli/named_checkpoint.h"

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"

namespace braid {

std::string named_checkpoint(const CheckpointName& name,
                             const std::function<void(const std::string& fault)>& on_passed_over) {
  const CheckpointChoice choice = chosen_checkpoint(name.path);
  if (choice.directory.empty()) {
    const std::string faults =
        choice.passed_over.empty() ? "holds none" : "holds none: " + joined(choice.passed_over, "; ");
    throw ConfigError({{name.option, name.value, cat("must find a whole checkpoint; ", name.path, " ", faults), ""}});
  }
  for (const std::string& fault : choice.passed_over) on_passed_over(fault);
  return choice.directory;
}

}  // namespace braid
