// Calls of std::filesystem whose faults are thrown as IoError.
#include "braid/base/path_look.h"

#include <algorithm>
#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

void require_seen(const std::string& path, const std::error_code& fault) {
  if (fault) throw IoError(path, -1, cat("cannot be looked at: ", fault.message()));
}

}  // namespace

PathKind path_kind(const std::string& path) {
  std::error_code fault;
  const auto status = fs::status(path, fault);
  if (status.type() == fs::file_type::not_found) return PathKind::Nothing;
  require_seen(path, fault);
  if (fs::is_directory(status)) return PathKind::Folder;
  return fs::is_regular_file(status) ? PathKind::File : PathKind::Other;
}

bool is_link(const std::string& path) {
  std::error_code fault;
  const auto status = fs::symlink_status(path, fault);
  if (status.type() != fs::file_type::not_found) require_seen(path, fault);
  return fs::is_symlink(status);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::error_code fault;
  std::vector<std::string> names;
  fs::directory_iterator entry(folder, fault);
  for (; !fault && entry != fs::directory_iterator(); entry.increment(fault)) names.push_back(entry->path().filename());
  require_seen(folder, fault);
  std::sort(names.begin(), names.end());
  return names;
}

std::string resolved_path(const std::string& path) {
  std::error_code fault;
  const fs::path resolved = fs::weakly_canonical(fs::absolute(path, fault), fault);
  require_seen(path, fault);
  return resolved;
}

int64_t file_bytes(const std::string& file) {
  std::error_code fault;
  const auto bytes = fs::file_size(file, fault);
  require_seen(file, fault);
  return static_cast<int64_t>(bytes);
}

int64_t change_time(const std::string& file) {
  std::error_code fault;
  const auto time = fs::last_write_time(file, fault);
  require_seen(file, fault);
  return time.time_since_epoch().count();
}

}  // namespace braid
