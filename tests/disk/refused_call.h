// Makes the system refuse a call of this process from now on, as a container's seccomp profile does. For forked
// children.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace braid::disk {

struct RefusedCall {
  long number = 0;     // SYS_...
  unsigned fault = 0;  // errno
  // If `bits` is not 0: only calls that have all of these bits in this argument.
  unsigned argument = 0, bits = 0;
};

inline void refuse(const RefusedCall& call) {
  const auto argument = static_cast<unsigned>(offsetof(seccomp_data, args) + 8 * call.argument);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call.number), 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, call.bits),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.bits, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | call.fault),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(filter), filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) std::abort();
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) std::abort();
}

}  // namespace braid::disk
