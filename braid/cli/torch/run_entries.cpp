// Checks the entries of a run's folder.
#include "braid/cli/torch/run_entries.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint_writer.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/spec/fields.h"
#include "braid/tokenize/document_list.h"

namespace braid::cli {
namespace {

constexpr const char* kEvents = "tensorboard";

// Returns true if the patterns of data.include match one of the run's own files.
bool takes_own_files(const std::vector<std::string>& include) {
  std::vector<std::string> names{kRunLock, kConfigName, kMetricsName};
  names.insert(names.end(), std::begin(kReplacedFiles), std::end(kReplacedFiles));
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::any_of(include, [&](const std::string& pattern) { return tokenize::matches(name, pattern); });
  };
  return include.empty() || std::ranges::any_of(names, is_taken);
}

}  // namespace

std::vector<std::string> event_files(const std::string& run) {
  const std::filesystem::path folder = std::filesystem::path(run) / kEvents;
  std::vector<std::string> found;
  if (path_kind(folder) != PathKind::Folder) return found;
  for (const std::string& name : names_in(folder)) {
    if (name.starts_with("events.out.tfevents.")) found.push_back(folder / name);
  }
  return found;
}

std::vector<std::string> faulty_entries(const std::string& run) {
  std::vector<std::string> found;
  const std::filesystem::path folder = run;
  for (const auto& [name, kind, rule] : {std::tuple(kEvents, PathKind::Folder, " must be a folder and no link"),
                                         {kMetricsName, PathKind::File, " must be a regular file and no link"}}) {
    const std::string entry = folder / name;
    if (PosixFileSystem().exists(entry) && (is_link(entry) || path_kind(entry) != kind)) found.push_back(entry + rule);
  }
  std::vector<std::string> files(std::begin(kReplacedFiles), std::end(kReplacedFiles));
  files.emplace_back(kConfigName);
  for (const std::string& name : files) {
    const std::string file = folder / name;
    if (!is_link(file) && path_kind(file) == PathKind::Folder) found.push_back(file + " must not be a folder");
  }
  for (const std::string& name : path_kind(run) == PathKind::Folder ? names_in(run) : std::vector<std::string>()) {
    const std::string entry = folder / name,
                      fault = ckpt::checkpoint_step(name) ? ckpt::why_not_replaceable(entry) : "";
    if (!fault.empty()) found.push_back(cat(entry, " ", fault));
  }
  return found;
}

void refuse_out_in_data(const RunSpec& spec) {
  const std::string out = resolved_path(spec.train.out) + "/";
  for (const std::string& path : spec.data.paths) {
    const bool is_inside = path_kind(path) == PathKind::Folder && out.starts_with(resolved_path(path) + "/");
    if (!is_inside || !takes_own_files(spec.data.include)) continue;
    throw ConfigError(
        {{"train.out", spec::toml_text(spec.train.out),
          cat("must not lie in a folder of data.paths (", path, "): the run's files would become documents"), ""}});
  }
}

}  // namespace braid::cli
