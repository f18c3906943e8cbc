// Fields of /proc/PID/stat and /proc/PID/io.
#include "braid/launch/process_status.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "braid/base/text.h"

namespace braid::launch {
namespace {

constexpr int kFieldsBeforeTime = 10;  // between the state and utime

std::string content_of(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

int64_t moved_bytes(pid_t process) {
  std::istringstream lines(content_of(cat("/proc/", process, "/io")));
  int64_t sum = 0, value = 0;
  for (std::string key; lines >> key >> value;) {
    if (key == "rchar:" || key == "wchar:") sum += value;
  }
  return sum;
}

}  // namespace

std::optional<ProcessStatus> process_status(pid_t process) {
  const std::string stat = content_of(cat("/proc/", process, "/stat"));
  const size_t name_end = stat.rfind(')');  // a name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  ProcessStatus signs;
  fields >> signs.state;
  std::string passed;
  for (int field = 0; field < kFieldsBeforeTime; ++field) fields >> passed;
  double user = 0, system = 0;
  fields >> user >> system;
  signs.cpu_seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  signs.io_bytes = moved_bytes(process);
  return signs;
}

// A kernel may hide the name as "0", and show the stack to root alone: "[<0>] ptrace_stop+0x132/0x340".
std::string kernel_wait(pid_t process) {
  const std::string name = content_of(cat("/proc/", process, "/wchan"));
  if (!name.empty() && name != "0") return printable(name, 100);
  std::istringstream stack(content_of(cat("/proc/", process, "/stack")));
  std::string address, function;
  stack >> address >> function;
  return function.empty() ? "unknown" : printable(function.substr(0, function.find('+')), 100);
}

}  // namespace braid::launch
