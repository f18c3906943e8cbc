// A process's status from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace braid::launch {

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

}  // namespace braid::launch
