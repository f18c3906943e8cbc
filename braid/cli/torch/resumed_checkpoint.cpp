// Finds the checkpoint to resume from. Defaults come from any checkpoint of the run with a readable manifest: model and
// tokenizer are the same in all.
#include "braid/cli/torch/resumed_checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/torch/named_checkpoint.h"
#include "braid/data/prepared_manifest.h"
#include "braid/spec/fields.h"
#include "braid/train/initial_weights.h"
#include "braid/train/resume.h"

namespace braid::cli {
namespace {

constexpr const char* kLatest = "latest";  // names the newest checkpoint in train.out

const std::string& resumed_path(const TrainSpec& train) { return train.resume == kLatest ? train.out : train.resume; }

struct FoundCheckpoint {
  std::string directory;
  ckpt::CheckpointInfo info;
};

// Returns the named checkpoint, or the newest of a run, whose manifest can be read; nothing if there is none.
std::optional<FoundCheckpoint> described_checkpoint(const std::string& path) {
  std::vector<std::string> directories{path};
  if (path_kind(std::filesystem::path(path) / "manifest.json") == PathKind::Nothing) {
    directories.clear();
    for (const ckpt::SavedCheckpoint& saved : ckpt::saved_checkpoints(path)) directories.push_back(saved.directory);
  }
  for (const std::string& directory : directories) {
    try {
      return FoundCheckpoint{directory, ckpt::read_checkpoint_info(directory)};
    } catch (const IoError&) {  // an older one may be readable
    }
  }
  return {};
}

ModelSpec model_of_weights(const TrainSpec& train, std::vector<Problem>& problems) {
  if (train.resume.empty()) return train::model_of_initial_checkpoint(train.init, problems);
  ModelSpec model;
  collect_problems(problems, [&] {
    auto found = described_checkpoint(resumed_path(train));
    if (!found) {
      const std::string directory = resumed_checkpoint(train, [](const std::string&) {});
      found = {directory, ckpt::read_checkpoint_info(directory)};
    }
    if (!found->info.config_toml.empty()) model = train::saved_spec(found->info, found->directory).model;
  });
  return model;
}

// Returns the tokenizer of the weights. On resume it is empty for prepared data, which have their own tokenizer, and
// for a checkpoint that cannot be read, which is refused later.
std::string default_tokenizer(const RunSpec& run) {
  if (run.train.resume.empty()) return run.train.init.empty() ? "" : train::tokenizer_of_weights(run.train.init);
  if (std::any_of(run.data.paths.begin(), run.data.paths.end(), data::is_prepared)) return "";
  const auto found = described_checkpoint(resumed_path(run.train));
  return found ? found->info.tokenizer : "";
}

}  // namespace

std::string resumed_checkpoint(const TrainSpec& train,
                               const std::function<void(const std::string& fault)>& on_passed_over) {
  if (train.resume.empty()) return "";
  return named_checkpoint({"train.resume", spec::toml_text(train.resume), resumed_path(train)}, on_passed_over);
}

void refuse_latest_of_nothing(const TrainSpec& train) {
  if (train.resume != kLatest || path_kind(train.out) == PathKind::Folder) return;
  throw ConfigError({{"train.resume", spec::toml_text(train.resume),
                      cat("must find a run in ", train.out, ", which is no folder"), ""}});
}

void set_defaults_of_weights(spec::ParseOptions& options) {
  options.model_of_checkpoint = model_of_weights;
  options.tokenizer_of_weights = default_tokenizer;
}

}  // namespace braid::cli
