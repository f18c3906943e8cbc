// Finds a named checkpoint, or reports why there is none.
#include "braid/cli/torch/named_checkpoint.h"

#include <filesystem>
#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/data/prepared_manifest.h"

namespace braid::cli {
namespace {

// Returns the newest checkpoint of the same run as a suggestion; empty if there is none.
std::string newest_beside(const std::string& path) {
  const std::string run = std::filesystem::path(path).parent_path();
  if (path_kind(run) != PathKind::Folder) return "";
  const auto saved = ckpt::saved_checkpoints(run);
  return saved.empty() ? "" : saved.front().directory;
}

}  // namespace

std::string named_checkpoint(const CheckpointName& name,
                             const std::function<void(const std::string& fault)>& on_passed_over) {
  if (data::is_prepared(name.path)) {
    throw ConfigError({{name.option, name.value,
                        cat("must be a checkpoint or a run's folder; ", name.path,
                            " holds prepared data (braid data prepare), which data.paths takes"),
                        ""}});
  }
  const ckpt::CheckpointChoice choice = ckpt::chosen_checkpoint(name.path);
  if (choice.directory.empty()) {
    const std::string found = path_kind(name.path) == PathKind::Nothing ? " does not exist" : " holds none";
    const std::string faults = choice.passed_over.empty() ? "" : ": " + joined(choice.passed_over, "; ");
    const bool is_model = path_kind(name.path + "/config.json") != PathKind::Nothing;
    const char* const hint = is_model ? "; braid ckpt from-hf makes one of a Hugging Face directory" : "";
    throw ConfigError({{name.option, name.value, cat("must find a whole checkpoint; ", name.path, found, faults, hint),
                        newest_beside(name.path)}});
  }
  for (const std::string& fault : choice.passed_over) on_passed_over(fault);
  return choice.directory;
}

void tell_passed_over(const std::string& fault) {
  constexpr size_t kMostOfFault = 20'000;  // bytes shown
  std::cerr << "braid: passed over " << printable(fault, kMostOfFault) << "\n";
}

}  // namespace braid::cli
