// When a rank counts as hung: for so long there has been no sign of it. Pure: it is shown the signs, and looks at no
// process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::launch {

// A process's status from /proc.
struct ProcessStatus {
  char state = '?';        // as ps shows it: R, S, D, T
  double cpu_seconds = 0;  // of all its threads
  int64_t io_bytes = 0;    // read and written by system calls; 0 where the kernel does not say
};

inline bool is_stopped(const ProcessStatus& signs) { return signs.state == 'T'; }

// Nothing where there is no such process.
std::optional<ProcessStatus> process_status(pid_t process);

// The kernel's function that the process sleeps in ("nfs_wait_bit_killable"); "unknown" where it may not be read.
std::string kernel_wait(pid_t process);

// A sample of a rank's state; counts only grow.
struct RankSample {
  bool ended = false;         // it has, or its life is over: nothing is expected of it
  bool waits = false;         // for other ranks
  bool of_storage = false;    // it reads or writes files
  bool held_outside = false;  // by a disk, a debugger, or whoever reads what it says
  int64_t activities = 0;     // begun
  int64_t io_bytes = 0;       // read and written
  double cpu_seconds = 0;
  double slowest_step = 0;  // seconds
};
template <class Pack>
void members(Pack& pack, RankSample& signs) {
  pack(signs.ended, signs.waits, signs.of_storage, signs.held_outside, signs.activities, signs.io_bytes,
       signs.cpu_seconds, signs.slowest_step);
}

// A rank shows a sign when it begins an activity, when bytes of files move, and while it is held from outside. One that
// waits for other ranks needs to show none, unless all do: then none can go on. After `progress_seconds`, or ten times
// the slowest step where that is longer, without a sign it is hung. Ten times as long where it computes meanwhile, or
// is at files.
class HangDetector {
 public:
  HangDetector(int num_ranks, double progress_seconds);

  // The rank that is hung; when all wait, the one that has begun the fewest activities. Where `progress_seconds` is 0,
  // none ever is. Asked about once a second; where longer than kGap passes between two calls the caller itself was
  // stopped, and all ranks have the time anew.
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
