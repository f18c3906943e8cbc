// Start of a process. Opens closed standard descriptors from 0 up, since open(2) returns the lowest free one.
#include "braid/base/process_start.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "braid/base/errors.h"

namespace braid {

void prepare_process() {
  for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; ++standard) {
    if (::fcntl(standard, F_GETFD) >= 0) continue;
    const int mode = standard == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (::open("/dev/null", mode) != standard) throw_system_fault("/dev/null", "open");
  }
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace braid
