// The folder of a run (train.out): its lock, and the treatment of files that an earlier run left there. Only the names
// of files from braid train and braid report matter here, except for metrics.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/base/file_lock.h"
#include "braid/report/run_record.h"
#include "braid/spec/run_spec.h"

namespace braid::cli {

class RunFolder {
 public:
  // Creates the folder if it is missing, and locks it against other runs as long as this object lives. Throws
  // ConfigError about train.out if the folder cannot be created or written, or if another run has locked it.
  explicit RunFolder(std::string path);
  // If begin() was never called, removes the lock and the folders that this object created, unless they contain
  // something else. So a refused run leaves nothing behind. Otherwise removes the mark of a run that is under way.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  // Returns the reason why other runs are not locked out: the file system has no locks. Empty if they are locked out.
  std::string why_open_to_others() const;

  // Decides what happens to the files that an earlier run left; changes nothing yet. A run that resumes from a
  // checkpoint of this folder continues in it. A run that may overwrite (train.overwrite) removes what braid wrote.
  // `train.resume` is a checkpoint or empty. Throws ConfigError in these cases:
  // * there are files of an earlier run, and the run neither resumes it nor may overwrite;
  // * something in the files to remove was not written by braid, or is read by the run itself (train.init);
  // * the run's files could not be written.
  void admit(const RunSpec& spec);

  // Carries out the decisions of admit(), for a run that begins after `first_step` steps. All other checks of the run
  // precede this call, so a mistake in the run's options loses nothing. A run that continues here undoes later steps:
  // their lines of metrics are removed, and their checkpoints are renamed to step-N.undone. Returns a sentence about
  // each action, and one about an earlier run that was killed, with the memory that it held. Throws IoError.
  std::vector<std::string> begin(int64_t first_step);
  // Returns the files and folders that begin() will remove; some may not exist.
  std::vector<std::string> removed_by_begin() const;
  // Returns true if begin() has returned, here or in a process forked from this one. Everything in the folder then
  // belongs to this run.
  bool has_begun() const { return *begun_; }

  // Sets the launcher's job of which this run is an attempt. begin() writes it down. Empty: none.
  void set_job(std::string job) { job_ = std::move(job); }
  // Returns true if an attempt of that job left the content of `run`.
  static bool is_of_job(const std::string& run, const std::string& job);

 private:
  enum class Leftovers { None, Removed, Resumed };

  std::vector<std::string> checkpoints() const;
  std::vector<std::string> leavings() const;
  void refuse_what_others_put() const;
  void refuse_own_inputs(const RunSpec& spec) const;
  std::vector<std::string> go_back(int64_t step) const;
  std::string killed_run_text() const;

  std::string path_;
  std::vector<std::string> made_;  // folders that this object created, innermost first
  bool makes_lock_;                // the file of the lock did not exist
  int maker_;                      // process that created them: forked ranks remove nothing
  FileLock lock_;
  Leftovers leftovers_ = Leftovers::None;
  std::string job_;
  std::shared_ptr<std::atomic<bool>> begun_;  // the flag lies in memory shared with forked processes
  std::string resumed_;                       // checkpoint of this folder from which the run resumes
};

// Returns the mark of the run that has locked the folder `run`. Empty if no run has locked it, or if there is no mark.
std::string run_mark(const std::string& run);
// Returns the reason why this host cannot create a file in `folder`; empty if it can.
std::string why_not_writable(const std::string& folder);

// Returns true if the metrics of the run that wrote `checkpoint` have an evaluation of `step`. Throws as record_of().
bool has_evaluation(const std::string& checkpoint, int64_t step);

// Returns the metrics in a run's folder; empty if there are none. Throws IoError as report::read_run_record().
report::RunRecord record_of(const std::string& run);

// Returns the validation losses, by step, in the metrics of a run's folder. Throws as record_of().
std::map<int64_t, double> evaluations_in(const std::string& run);

}  // namespace braid::cli
