// Names of a run's checkpoints, parsed back into steps.
#include "braid/ckpt/saved_checkpoints.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/manifest.h"

namespace braid::ckpt {

CheckpointReading::CheckpointReading(const std::string& directory) {
  if (directory.empty()) return;
  const std::string manifest = found_directory(directory) + "/manifest.json";
  if (is_link(manifest) || path_kind(manifest) != PathKind::File) return;  // reading it reports the fault
  lock_.emplace(manifest, LockMode::Shared);
  if (lock_->result() != LockResult::HeldByAnother) return;
  throw IoError(directory, -1, "is being removed by the run that wrote it (checkpoint.keep)");
}

void CheckpointReading::end() {
  const std::scoped_lock hold(mutex_);
  lock_.reset();
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr const char* kUndone = ".undone";

// Returns no names if `run` does not exist.
std::vector<std::string> entries_of(const std::string& run) {
  return path_kind(run) == PathKind::Nothing ? std::vector<std::string>() : names_in(run);
}

// Returns true also if the folder cannot be looked at: reading it then reports the reason.
bool is_checkpoint(const std::string& directory) {
  try {
    return path_kind(found_directory(directory) + "/manifest.json") != PathKind::Nothing;
  } catch (const IoError&) {
    return true;
  }
}

// Returns the step in `name` before the suffix that `suffixed` appends; nullopt if `name` has another form.
template <class Suffixed>
std::optional<int64_t> step_under(const std::string& name, const Suffixed& suffixed) {
  const std::string suffix = suffixed("");
  return name.ends_with(suffix) ? checkpoint_step(name.substr(0, name.size() - suffix.size())) : std::nullopt;
}

// Returns true for names that set_undone() makes.
bool is_undone_name(const std::string& name) {
  const auto suffix = name.find(kUndone);
  if (suffix == name.npos || !checkpoint_step(name.substr(0, suffix))) return false;
  const std::string number = name.substr(suffix + std::string_view(kUndone).size());
  return number.empty() ||
         (number.size() > 1 && number[0] == '-' && number.find_first_not_of("0123456789", 1) == number.npos);
}

std::optional<std::set<std::string>> listed_files(const std::string& place) {
  try {
    std::set<std::string> names;
    for (const auto& [name, file] : read_manifest(place).files) names.insert(name);
    return names;
  } catch (const IoError&) {
    return {};
  }
}

}  // namespace

std::string checkpoint_folder(const std::string& run, int64_t step) { return fs::path(run) / cat(kPrefix, step); }

std::optional<int64_t> checkpoint_step(const std::string& name) {
  if (!name.starts_with(kPrefix)) return {};
  int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  const bool whole = error == std::errc() && stop == end && step >= 0;
  return whole && name == cat(kPrefix, step) ? std::optional(step) : std::nullopt;
}

std::vector<SavedCheckpoint> saved_checkpoints(const std::string& run) {
  std::set<int64_t> steps;
  for (const std::string& name : entries_of(run)) {
    auto step = checkpoint_step(name);
    if (!step) step = step_under(name, aside_name);
    if (step && is_checkpoint(checkpoint_folder(run, *step))) steps.insert(*step);
  }
  std::vector<SavedCheckpoint> found;
  for (const int64_t step : steps) found.push_back({step, checkpoint_folder(run, step)});
  std::reverse(found.begin(), found.end());
  return found;
}

std::vector<std::string> half_written_checkpoints(const std::string& run) {
  std::vector<std::string> found;
  for (const std::string& name : entries_of(run)) {
    const std::string path = fs::path(run) / name;
    const std::string own = name.substr(0, name.find(temporary_name("")));
    if (checkpoint_step(own) && is_temporary_name(name, own) && path_kind(path) == PathKind::Folder)
      found.push_back(path);
  }
  return found;
}

std::string set_undone(const SavedCheckpoint& saved, FileSystem& files) {
  const std::string name = saved.directory + kUndone;
  std::string free = name;
  for (int number = 2; files.exists(free); ++number) free = cat(name, "-", number);
  const std::string place = found_directory(saved.directory);
  if (place == saved.directory)
    files.remove_all(aside_name(place));  // an older checkpoint of the step; else found_directory() would find it next
  files.rename(place, free);
  return free;
}

std::vector<std::string> undone_checkpoints(const std::string& run) {
  std::vector<std::string> found;
  for (const std::string& name : entries_of(run)) {
    const std::string path = fs::path(run) / name;
    if (is_undone_name(name) && is_checkpoint(path)) found.push_back(path);
  }
  return found;
}

std::vector<std::string> entries_of_others(const std::string& directory) {
  const std::string place = found_directory(directory);
  const auto listed = listed_files(place);
  std::vector<std::string> found;
  for (const std::string& name : names_in(place)) {
    const bool own = name == "manifest.json" || (listed ? listed->contains(name) : name.ends_with(".safetensors"));
    if (!own) found.push_back(fs::path(place) / name);
  }
  return found;
}

CheckpointChoice chosen_checkpoint(const std::string& path) {
  if (is_checkpoint(path)) return {path, {}};
  CheckpointChoice choice;
  if (path_kind(path) != PathKind::Folder) return choice;
  for (const auto& saved : saved_checkpoints(path)) {
    try {
      verify_checkpoint(saved.directory);
      choice.directory = saved.directory;
      break;
    } catch (const IoError& error) {
      choice.passed_over.push_back(error.what());
    }
  }
  return choice;
}

}  // namespace braid::ckpt
