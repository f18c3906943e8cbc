// Properties of the terminal that standard output is connected to.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "braid/base/text.h"

namespace braid::cli {

inline bool stdout_is_terminal() { return isatty(STDOUT_FILENO) != 0; }

// Returns true if TERM and the locale say that the terminal on standard output understands escape sequences and shows
// UTF-8: a "dumb" terminal and the C locale do not. Such terminals get plain lines of ASCII.
bool terminal_takes_escapes();

// Returns true if standard output is a terminal whose last line can be rewritten.
inline bool stdout_is_interactive() { return stdout_is_terminal() && terminal_takes_escapes(); }

// Returns the columns of the terminal on standard output; 100 if unknown.
inline int terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

// Returns the lines of the terminal on standard output; 40 if unknown.
inline int terminal_height() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 40;
}

// Returns text of a model or a file in a form that is safe for standard output. On a terminal, control characters
// except tabs and line ends are escaped. A pipe or a file gets the text as it is.
inline std::string shown_on_stdout(std::string_view text) {
  if (!stdout_is_terminal()) return std::string(text);
  std::string shown;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\t', begin), text.size());
    shown += printable(text.substr(begin, end - begin), text.size(), LineBreaks::Kept);
    if (end < text.size()) shown += '\t';
    begin = end + 1;
  }
  return shown;
}

// Returns a name or a path in a form that fits on one line.
inline std::string shown_on_line(std::string_view name) { return printable(name, 20'000); }

}  // namespace braid::cli
