// Locks a run's folder, and removes or keeps the files that an earlier run left there.
#include "braid/cli/torch/run_folder.h"

#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <new>
#include <thread>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/base/host.h"
#include "braid/base/output_file.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/retention.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/cli/torch/run_entries.h"
#include "braid/report/metrics_file.h"
#include "braid/report/run_record.h"
#include "braid/spec/fields.h"
#include "braid/train/initial_weights.h"

namespace braid::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const std::string& rule) {
  throw ConfigError({{"train.out", spec::toml_text(path), rule, ""}});
}

// Returns `path` and its parents as far as they do not exist, innermost first.
std::vector<std::string> missing_folders(const std::string& path) {
  std::vector<std::string> missing;
  fs::path folder = fs::absolute(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  for (; folder != folder.root_path() && !PosixFileSystem().exists(folder); folder = folder.parent_path()) {
    missing.push_back(folder);
  }
  return missing;
}

// Creates the folder, as durably as the checkpoints that it will hold. Returns the folders that were missing, innermost
// first.
std::vector<std::string> made(const std::string& path) {
  if (is_link(path) && path_kind(path) == PathKind::Nothing) {
    refuse(path,
           cat("must be a folder, and is a link to ", fs::read_symlink(path).string(), ", where there is nothing"));
  }
  try {
    std::vector<std::string> missing = missing_folders(path);
    PosixFileSystem().create_directories(path);
    return missing;
  } catch (const IoError& error) {
    refuse(path, cat("must be a folder that can be made: ", error.what()));
  }
}

std::string locked_by() { return cat("process ", ::getpid(), " on ", host_name()); }

// Calls flock(2), with retries for a second. Rank processes share the lock of their command. If the command is killed,
// they end a moment later, and a command that is started again at once waits for them.
int patient_flock(int descriptor, int operation) {
  constexpr std::chrono::milliseconds kPause(20);
  int failed = ::flock(descriptor, operation);
  for (int pauses = 0; failed != 0 && errno == EWOULDBLOCK && pauses < 50; ++pauses) {
    std::this_thread::sleep_for(kPause);
    failed = ::flock(descriptor, operation);
  }
  return failed;
}

FileLock lock_of(const std::string& path) {
  try {
    return FileLock(fs::path(path) / kRunLock, locked_by(), patient_flock);
  } catch (const IoError& error) {
    refuse(path, cat("must be a folder that can be written: ", error.what()));
  }
}

std::shared_ptr<std::atomic<bool>> shared_flag() {
  void* memory = ::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw RunError(cat("no memory to share with ranks: ", std::strerror(errno)));
  const auto unmap = [](std::atomic<bool>* flag) { ::munmap(flag, sizeof *flag); };
  return {new (memory) std::atomic<bool>(false), unmap};
}

// Returns the first line of a file; empty if the file cannot be read.
std::string first_line(const fs::path& path) {
  constexpr int64_t kMostBytes = 4096;  // far more than the name of a job or of a lock's owner
  try {
    const std::string content = file_content(path, kMostBytes);
    return content.substr(0, content.find('\n'));
  } catch (const IoError&) {
    return "";
  }
}

bool is_there(const fs::path& path) { return PosixFileSystem().exists(path); }

// Returns the folder that contains a checkpoint, with links resolved and independent of the path's spelling.
std::string run_of(const std::string& checkpoint) {
  fs::path path = resolved_path(checkpoint);
  if (!path.has_filename()) path = path.parent_path();
  return path.parent_path();
}

// Returns checkpoints whose writing or removal was interrupted, and files whose writing was.
std::vector<std::string> left_by_interruptions(const std::string& run) {
  std::vector<std::string> found = ckpt::half_written_checkpoints(run);
  for (auto& path : ckpt::half_removed_checkpoints(run)) found.push_back(std::move(path));
  for (const char* name : kReplacedFiles) found.push_back(half_written_name(fs::path(run) / name));
  return found;
}

// Returns the paths of files and folders that the run reads, each with the key that names it.
std::vector<std::pair<std::string, std::string>> inputs_of(const RunSpec& spec) {
  std::vector<std::pair<std::string, std::string>> inputs{{"data.tokenizer", spec.data.tokenizer}};
  for (const std::string& path : spec.data.paths) inputs.emplace_back("data.paths", path);
  if (const std::string init = train::chosen_initial_weights(spec.train); !init.empty())
    inputs.emplace_back("train.init", init);
  return inputs;
}

}  // namespace

RunFolder::RunFolder(std::string path)
    : path_(std::move(path)),
      made_(made(path_)),
      makes_lock_(::access((fs::path(path_) / kRunLock).c_str(), F_OK) != 0),
      maker_(::getpid()),
      lock_(lock_of(path_)),
      begun_(shared_flag()) {
  if (lock_.state() != FileLock::State::Theirs) return;
  const std::string owner = lock_.owner().empty() ? "" : cat(" (", lock_.owner(), ")");
  refuse(path_, cat("another run", owner, " writes there; it must be a folder that no other run is using"));
}

RunFolder::~RunFolder() {
  if (::getpid() != maker_) return;
  if (has_begun()) {
    ::unlink((fs::path(path_) / kRunUnderway).c_str());
    return;
  }
  if (makes_lock_) lock_.remove();
  for (const std::string& folder : made_) {
    if (::rmdir(folder.c_str()) != 0) return;  // it contains something else
  }
}

std::string RunFolder::why_open_to_others() const { return lock_.why(); }

void RunFolder::admit(const RunSpec& spec) {
  const TrainSpec& train = spec.train;
  refuse_out_in_data(spec);
  const std::vector<std::string> faults = faulty_entries(path_);
  if (!faults.empty())
    refuse(path_, cat("holds what is in the way of the run's files: ", joined(faults), "; move it away first"));
  const bool used = !ckpt::saved_checkpoints(path_).empty() || is_there(fs::path(path_) / kMetricsName);
  if (!used) return;
  if (!train.resume.empty() && run_of(train.resume) == resolved_path(path_)) {
    leftovers_ = Leftovers::Resumed;
    resumed_ = resolved_path(train.resume);
    return;
  }
  if (!train.overwrite) {
    refuse(path_,
           "holds an earlier run; name another folder, resume it (train.resume=latest), or have what that run left "
           "removed (train.overwrite=true)");
  }
  refuse_what_others_put();
  refuse_own_inputs(spec);
  leftovers_ = Leftovers::Removed;
}

// Throws ConfigError if the run's inputs would be removed. A run that is rolled back to its beginning reads them again.
void RunFolder::refuse_own_inputs(const RunSpec& spec) const {
  std::vector<Problem> problems;
  for (const auto& [key, input] : inputs_of(spec)) {
    const std::string place = resolved_path(input) + "/";
    const auto holds_it = [&](const std::string& left) { return place.starts_with(resolved_path(left) + "/"); };
    if (std::ranges::none_of(leavings(), holds_it)) continue;
    problems.push_back({"train.overwrite", "true",
                        cat("would remove what ", key, " = ", spec::toml_text(input),
                            " names; move it away or name another train.out"),
                        "false"});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

// Throws ConfigError if checkpoint folders contain entries that braid did not write: these folders are removed whole.
void RunFolder::refuse_what_others_put() const {
  std::vector<std::string> found;
  for (const std::string& checkpoint : checkpoints()) {
    for (const std::string& place : {checkpoint, ckpt::aside_name(checkpoint)}) {
      if (!is_there(place)) continue;
      for (auto& entry : ckpt::entries_of_others(place)) found.push_back(std::move(entry));
    }
  }
  if (found.empty()) return;
  throw ConfigError(
      {{"train.overwrite", "true",
        cat("would remove what braid did not write: ", joined(found), "; it must be moved away first"), "false"}});
}

std::vector<std::string> RunFolder::checkpoints() const {
  std::vector<std::string> all = ckpt::undone_checkpoints(path_);
  for (const auto& saved : ckpt::saved_checkpoints(path_)) all.push_back(saved.directory);
  return all;
}

std::vector<std::string> RunFolder::leavings() const {
  std::vector<std::string> all = left_by_interruptions(path_);
  for (const std::string& checkpoint : checkpoints()) {
    all.push_back(checkpoint);
    all.push_back(ckpt::aside_name(checkpoint));
  }
  for (auto& file : event_files(path_)) all.push_back(std::move(file));
  for (const char* name : kReplacedFiles) all.push_back(fs::path(path_) / name);
  const std::string metrics = fs::path(path_) / kMetricsName;
  all.push_back(report::cut_metrics_name(metrics));
  all.push_back(metrics);  // last: as long as this file exists, the folder is that of a run
  return all;
}

std::vector<std::string> RunFolder::removed_by_begin() const {
  if (leftovers_ == Leftovers::Resumed) return left_by_interruptions(path_);
  return leftovers_ == Leftovers::Removed ? leavings() : std::vector<std::string>();
}

std::vector<std::string> RunFolder::begin(int64_t first_step) {
  std::vector<std::string> done;
  PosixFileSystem files;
  const std::string killed = has_begun() ? "" : killed_run_text();  // of a restart, all is known
  if (leftovers_ == Leftovers::Resumed) done = go_back(first_step);
  if (leftovers_ == Leftovers::Removed) {
    // Renamed first, so that what is left of one is recognised if the process dies meanwhile.
    for (const auto& saved : ckpt::saved_checkpoints(path_)) ckpt::remove_checkpoint(saved, files);
    for (const std::string& path : removed_by_begin()) files.remove_all(path);
    done.push_back(cat("removed what an earlier run had left in ", path_));
  }
  if (!job_.empty()) write_file(fs::path(path_) / kRunJob, job_ + "\n", files);
  write_file(fs::path(path_) / kRunUnderway, locked_by() + "\n", files);
  if (!killed.empty()) done.push_back(killed);
  *begun_ = true;
  return done;
}

bool RunFolder::is_of_job(const std::string& run, const std::string& job) {
  return !job.empty() && first_line(fs::path(run) / kRunJob) == job;
}

std::vector<std::string> RunFolder::go_back(int64_t step) const {
  PosixFileSystem files;
  std::vector<std::string> done;
  for (const std::string& path : removed_by_begin()) files.remove_all(path);
  for (const auto& saved : ckpt::saved_checkpoints(path_)) {
    // A checkpoint of `step` itself belongs to another branch if the run resumes from a different one of that step.
    if (saved.step < step || resolved_path(saved.directory) == resumed_) break;
    const std::string name = ckpt::set_undone(saved, files);
    done.push_back(cat("set ", saved.directory, " aside as ", name, ": the run goes back to step ", step));
  }
  const std::string cut = report::sentence(report::cut_metrics(fs::path(path_) / kMetricsName, step, files), step);
  if (!cut.empty()) done.push_back(cut);
  return done;
}

std::string run_mark(const std::string& run) { return first_line(fs::path(run) / kRunLock); }

std::string why_not_writable(const std::string& folder) {
  const fs::path path = fs::path(folder) / cat("run.tried-", host_name(), "-", ::getpid());
  try {
    write_file(path, "");
  } catch (const IoError& error) {
    return error.why();
  }
  std::error_code gone;
  fs::remove(path, gone);
  return "";
}

bool has_evaluation(const std::string& checkpoint, int64_t step) {
  return evaluations_in(run_of(checkpoint)).contains(step);
}

}  // namespace braid::cli
