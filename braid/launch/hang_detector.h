// Detects hung ranks: those that have made no progress for a given time. HangDetector judges samples that the caller
// takes; it does not read the state of processes itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::launch {

// A process's status from /proc.
struct ProcessStatus {
  char state = '?';        // the letter that ps shows: R, S, D, T
  bool exits = false;      // the kernel is ending the process: it frees its memory, or no one has reaped it yet
  double cpu_seconds = 0;  // CPU time of all threads
  int64_t io_bytes = 0;    // bytes read and written by system calls; 0 if the kernel does not report them
};

inline bool is_stopped(const ProcessStatus& signs) { return signs.state == 'T'; }

// Returns nothing if there is no such process.
std::optional<ProcessStatus> process_status(pid_t process);

// Returns the kernel function in which the process sleeps, "nfs_wait_bit_killable"; "unknown" if it may not be read.
std::string kernel_wait(pid_t process);

// A sample of a rank's state; counts only grow.
struct RankSample {
  bool ended = false;         // the process has ended, or the rank has sent its outcome
  bool waits = false;         // the rank waits for other ranks
  bool serves = false;        // it waits for requests of other ranks and has none to answer
  bool of_storage = false;    // the rank reads or writes files
  bool held_outside = false;  // a disk, a debugger, or the reader of the rank's output holds it up
  int64_t activities = 0;     // number of activities begun
  int64_t io_bytes = 0;       // bytes read and written by system calls
  double cpu_seconds = 0;
  double slowest_step = 0;  // duration of the slowest step, in seconds
};
template <class Pack>
void members(Pack& pack, RankSample& signs) {
  pack(signs.ended, signs.waits, signs.serves, signs.of_storage, signs.held_outside, signs.activities, signs.io_bytes,
       signs.cpu_seconds, signs.slowest_step);
}

// The detector of hung ranks. A rank makes progress when it begins an activity, when it reads or writes bytes, and
// while it is held up from outside. A rank is silent after `progress_seconds` without progress, or after ten times the
// slowest step of any rank if that is longer. A rank that computes or accesses files meanwhile is silent after ten
// times that limit.
//
// A silent rank is hung, unless it waits for other ranks. If all ranks are silent and wait, none can continue.
class HangDetector {
 public:
  HangDetector(int num_ranks, double progress_seconds);

  // Returns the hung rank. If all ranks are silent and wait, returns the one that has begun the fewest activities. A
  // server that waits for requests holds up nobody, so it is returned only if all ranks are such servers.
  // Returns nothing if no rank is hung, or if `progress_seconds` is 0. The caller calls this about once a second. If
  // more than kGap passes between two calls, the caller itself was stopped, and the time of all ranks begins again.
  std::optional<int> look(double now_seconds, const std::vector<RankSample>& ranks);

  static constexpr double kGap = 3;  // seconds

 private:
  struct Seen {
    RankSample signs;
    double sign_at = 0, cpu_at = 0;
  };

  void take(Seen& seen, const RankSample& signs, double now) const;
  bool is_silent(const Seen& seen, double now) const;
  void forgive(double now);

  const double progress_seconds_;
  double looked_at_ = -1;
  double slowest_step_ = 0;
  std::vector<Seen> ranks_;
};

}  // namespace braid::launch
