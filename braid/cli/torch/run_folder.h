// The folder of a run (train.out): whose it is, what an earlier run has left there, and what becomes of that. It knows
// the names of what braid train and braid report write there, and not what is in them.
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
  // Makes the folder where it is not there and holds it, against other runs, until this ends. Throws ConfigError about
  // train.out when it cannot be made or written, or when another run holds it.
  explicit RunFolder(std::string path);
  // If begin() was never called, removes the lock and the folders that it made, unless something else lies in them: a
  // refused run leaves nothing.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  // Why nothing keeps other runs out: the file system has no locks. Empty when something does.
  std::string why_open_to_others() const;

  // Decides what becomes of what an earlier run has left; `train.resume` is a checkpoint or empty. A run that resumes
  // from this folder goes on in it, one that may overwrite removes what braid wrote. Throws ConfigError when neither
  // is so and something is there, or when something of others, or that the run itself reads (train.init), lies in what
  // would be removed, or where the run's files could not be written. Nothing happens yet.
  void admit(const RunSpec& spec);

  // Does it, for a run that begins after `first_step` steps: all that could be wrong with that run has been said, so
  // nothing is lost for a slip of the pen. A run that goes on takes back what happened after that step: lines of
  // metrics go, checkpoints are set aside as step-N.undone. Returns a sentence about each thing done. Throws IoError.
  std::vector<std::string> begin(int64_t first_step);
  // The files and folders that begin() will remove; some may not be there.
  std::vector<std::string> removed_by_begin() const;
  // Returns true if begin() has returned, here or in a process forked from this one. From then on everything in the
  // folder is this run's own.
  bool has_begun() const { return *begun_; }

  // The job of a launcher that this run is an attempt of, which begin() writes down; empty: none.
  void set_job(std::string job) { job_ = std::move(job); }
  // Returns true if the content of `run` was left by an attempt of that job.
  static bool is_of_job(const std::string& run, const std::string& job);

 private:
  enum class Leftovers { None, Removed, Resumed };

  std::vector<std::string> checkpoints() const;
  std::vector<std::string> leavings() const;
  void refuse_what_others_put() const;
  void refuse_own_inputs(const RunSpec& spec) const;
  std::vector<std::string> go_back(int64_t step) const;

  std::string path_;
  std::vector<std::string> made_;  // the folders that were missing, innermost first
  bool makes_lock_;                // there was no file for it
  int maker_;                      // the process that made them: forked ranks remove nothing
  FileLock lock_;
  Leftovers leftovers_ = Leftovers::None;
  std::string job_;
  std::shared_ptr<std::atomic<bool>> begun_;  // in memory that forked processes share
  std::string resumed_;                       // the checkpoint of this folder that the run goes on from
};

// Returns the mark that the run which holds a folder has written there; empty if no run holds it, or if it is missing.
std::string run_mark(const std::string& run);
// Why no file can be made in `folder` by this host; empty where one can.
std::string why_not_writable(const std::string& folder);

// Returns true if the run in whose folder `checkpoint` lies has the evaluation of `step` in its metrics. False if its
// metrics are missing or unreadable.
bool has_evaluation(const std::string& checkpoint, int64_t step);

// Reads the metrics in a run's folder; empty if they are missing or unreadable.
report::RunRecord record_of(const std::string& run);

// The validation losses by step that a run's folder has in its metrics; none where there are none that can be read.
std::map<int64_t, double> evaluations_in(const std::string& run);

}  // namespace braid::cli
