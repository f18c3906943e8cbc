// Ranks checkpoints, and removes superseded ones. Each is renamed before its removal.
#include "braid/ckpt/retention.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/file_lock.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/manifest.h"

namespace braid::ckpt {
namespace {

constexpr std::string_view kRemoved = ".removed";

bool can_be_gone_on_from(const SavedCheckpoint& saved) {
  try {
    const std::string place = found_directory(saved.directory);
    for (const auto& [name, listed] : read_manifest(place).files) {
      if (CheckedFile(place + "/" + name).bytes() != listed.bytes) return false;
    }
    return true;
  } catch (const IoError&) {
    return false;
  }
}

std::set<int64_t> best_steps(const std::vector<SavedCheckpoint>& whole, int count,
                             const std::map<int64_t, double>& losses) {
  std::vector<std::pair<double, int64_t>> ranked;
  for (const SavedCheckpoint& saved : whole) {
    const auto loss = losses.find(saved.step);
    if (loss != losses.end()) ranked.push_back({loss->second, -saved.step});
  }
  std::sort(ranked.begin(), ranked.end());
  std::set<int64_t> steps;
  for (const auto& [loss, minus_step] : ranked) {
    if (static_cast<int>(steps.size()) < count) steps.insert(-minus_step);
  }
  return steps;
}

}  // namespace

std::vector<SavedCheckpoint> superseded(const std::string& run, const Retention& retention,
                                        const std::map<int64_t, double>& losses) {
  std::vector<SavedCheckpoint> whole, gone;
  if (retention.newest == 0) return gone;
  const std::vector<SavedCheckpoint> all = saved_checkpoints(run);
  std::copy_if(all.begin(), all.end(), std::back_inserter(whole), can_be_gone_on_from);
  if (static_cast<int>(whole.size()) <= retention.newest) return gone;
  const int64_t oldest_kept = whole[static_cast<size_t>(retention.newest) - 1].step;
  const std::set<int64_t> best = best_steps(whole, retention.best, losses);
  for (const SavedCheckpoint& saved : all) {
    if (saved.step < oldest_kept && !best.contains(saved.step)) gone.push_back(saved);
  }
  return gone;
}

bool remove_checkpoint(const SavedCheckpoint& saved, FileSystem& files) {
  const std::string place = found_directory(saved.directory), removed = cat(saved.directory, kRemoved);
  std::optional<AdvisoryLock> alone;
  const std::string manifest = place + "/manifest.json";
  if (path_kind(manifest) != PathKind::Nothing) alone.emplace(manifest, LockMode::Exclusive);
  if (alone && alone->result() == LockResult::HeldByAnother) return false;
  if (place == saved.directory) files.remove_all(aside_name(place));  // else found_directory() would find it next
  files.remove_all(removed);
  files.rename(place, removed);
  files.sync_directory(std::filesystem::path(removed).parent_path());
  files.remove_all(removed);
  return true;
}

std::vector<std::string> half_removed_checkpoints(const std::string& run) {
  std::vector<std::string> found;
  if (path_kind(run) == PathKind::Nothing) return found;
  for (const std::string& name : names_in(run)) {
    if (!name.ends_with(kRemoved) || !checkpoint_step(name.substr(0, name.size() - kRemoved.size()))) continue;
    found.push_back(std::filesystem::path(run) / name);
  }
  return found;
}

}  // namespace braid::ckpt
