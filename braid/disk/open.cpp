// Opens a Disk: the checks of its folders, its files, and the queue that the system allows.
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "braid/base/text.h"
#include "braid/disk/aligned_buffer.h"
#include "braid/disk/folder_problems.h"
#include "braid/disk/scratch_file.h"
#include "braid/disk/striped_files.h"

namespace braid::disk {
namespace {

constexpr int kMostThreads = 8;

int64_t bytes_in_each_folder(const Options& options) {
  const size_t folders = options.folders.size();
  return folders > 1 ? StripedFiles::bytes_of_each(options.bytes, folders) : whole_blocks(options.bytes);
}

std::unique_ptr<TransferQueue> make_queue(const Options& options, std::vector<std::string>& notes) {
  if (options.engine != Engine::Threads) {
    std::string why;
    if (auto queue = make_uring_queue(options.depth, why)) return queue;
    if (options.engine == Engine::IoUring)
      throw ConfigError({{options.key, "", cat("io_uring is refused: ", why), ""}});
    notes.push_back(cat("io_uring is refused (", why, "); threads read and write the scratch files"));
  }
  return make_thread_queue(std::min(options.depth, kMostThreads));
}

std::unique_ptr<Disk> open_in(const std::string& folder, const Options& options) {
  auto file = std::make_unique<UnnamedFile>(folder, bytes_in_each_folder(options), options.key);
  ScratchFile::Settings settings{options.depth, options.checksums};
  if (!file->cache_note().empty()) settings.notes.push_back(file->cache_note());
  auto queue = make_queue(options, settings.notes);
  return std::make_unique<ScratchFile>(std::move(file), std::move(queue), std::move(settings));
}

}  // namespace

int64_t bytes_beside(const std::string& folder, const Options& options) {
  const auto device_of = [](const std::string& path) {
    struct stat about {};
    const bool is_folder = ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
    return is_folder ? std::optional(about.st_dev) : std::nullopt;
  };
  const auto device = device_of(folder);
  const auto is_beside = [&](const std::string& each) {
    return each == folder || (device && device_of(each) == device);
  };
  return std::ranges::count_if(options.folders, is_beside) * bytes_in_each_folder(options);
}

std::vector<Problem> problems(const Options& options) {
  if (options.folders.empty()) return {{options.key, "", "must name a folder", ""}};
  std::vector<Problem> found;
  for (const std::string& folder : options.folders) {
    for (Problem& problem : folder_problems(folder, bytes_beside(folder, options), options.key)) {
      found.push_back(std::move(problem));
    }
  }
  return found;
}

std::unique_ptr<Disk> open(const Options& options) {
  check(options.bytes >= 0 && options.depth >= 1, "a disk has a size and a depth");
  auto found = problems(options);
  if (!found.empty()) throw ConfigError(std::move(found));
  std::vector<std::unique_ptr<Disk>> disks;
  for (const std::string& folder : options.folders) {
    try {
      disks.push_back(open_in(folder, options));
    } catch (const ConfigError& error) {
      found.insert(found.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (!found.empty()) throw ConfigError(std::move(found));
  if (disks.size() == 1) return std::move(disks.front());
  return std::make_unique<StripedFiles>(std::move(disks));
}

}  // namespace braid::disk
