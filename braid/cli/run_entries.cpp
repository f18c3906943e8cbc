// Kinds of entries.
#include "braid/cli/run_entries.h"

#include <filesystem>
#include <tuple>

#include "braid/base/file_system.h"
#include "braid/base/path_look.h"

namespace braid {
namespace {

constexpr const char* kEvents = "tensorboard";

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
  files.emplace_back("config.toml");
  for (const std::string& name : files) {
    const std::string file = folder / name;
    if (!is_link(file) && path_kind(file) == PathKind::Folder) found.push_back(file + " must not be a folder");
  }
  return found;
}

}  // namespace braid
