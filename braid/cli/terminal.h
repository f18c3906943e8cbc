// What the output is connected to.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

namespace braid {

inline bool stdout_is_terminal() { return isatty(STDOUT_FILENO) != 0; }

// Columns of the terminal on standard output; 100 when it does not say.
inline int terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

// Lines of the terminal on standard output; 40 when it does not say.
inline int terminal_height() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 40;
}

}  // namespace braid
