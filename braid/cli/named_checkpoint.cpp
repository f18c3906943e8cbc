// Wording.
#include "braid/cli/named_checkpoint.h"

#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// What may have been meant: a checkpoint of the same run; empty where there is none.
std::string newest_beside(const std::string& path) {
  const std::string run = fs::path(path).parent_path();
  std::error_code unreadable;
  if (!fs::is_directory(run, unreadable)) return "";
  const auto saved = saved_checkpoints(run);
  return saved.empty() ? "" : saved.front().directory;
}

}  // namespace

std::string named_checkpoint(const CheckpointName& name,
                             const std::function<void(const std::string& fault)>& on_passed_over) {
  const CheckpointChoice choice = chosen_checkpoint(name.path);
  if (choice.directory.empty()) {
    std::error_code unreadable;
    const std::string found = fs::exists(name.path, unreadable) ? " holds none" : " does not exist";
    const std::string faults = choice.passed_over.empty() ? "" : ": " + joined(choice.passed_over, "; ");
    throw ConfigError({{name.option, name.value, cat("must find a whole checkpoint; ", name.path, found, faults),
                        newest_beside(name.path)}});
  }
  for (const std::string& fault : choice.passed_over) on_passed_over(fault);
  return choice.directory;
}

}  // namespace braid
