// Reads the locale from the environment. The locale of the process stays "C", so that numbers look the same everywhere.
#include "braid/cli/terminal.h"

#include <cstdlib>

namespace braid::cli {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// As POSIX defines, the first of the three variables that is set and not empty decides.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string locale = lower_case(variable(name));
    if (!locale.empty()) return locale.find("utf-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return false;
}

}  // namespace

bool terminal_takes_escapes() {
  const std::string kind = variable("TERM");
  return !kind.empty() && kind != "dumb" && locale_is_utf8();
}

}  // namespace braid::cli
