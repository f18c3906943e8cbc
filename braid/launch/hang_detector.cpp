// Each rank has two times: its last sign of progress (`sign_at`) and its last use of the CPU (`cpu_at`).
#include "braid/launch/hang_detector.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "braid/base/text.h"

namespace braid::launch {
namespace {

constexpr int kFieldsBeforeTime = 10;   // number of fields between the state and utime
constexpr int kFlagsField = 5;          // the flags' place among them
constexpr uint64_t kExitingFlag = 0x4;  // PF_EXITING of the kernel's include/linux/sched.h

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
  const size_t name_end = stat.rfind(')');  // a process name may contain any character
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  ProcessStatus signs;
  fields >> signs.state;
  int64_t passed = 0;  // a field may be negative
  for (int field = 0; field < kFieldsBeforeTime; ++field) {
    fields >> passed;
    if (field == kFlagsField) signs.exits = (static_cast<uint64_t>(passed) & kExitingFlag) != 0;
  }
  signs.exits |= signs.state == 'Z' || signs.state == 'X';
  double user = 0, system = 0;
  fields >> user >> system;
  signs.cpu_seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  signs.io_bytes = moved_bytes(process);
  return signs;
}

// The kernel may replace the name by "0". It shows the stack only to root: "[<0>] ptrace_stop+0x132/0x340".
std::string kernel_wait(pid_t process) {
  const std::string name = content_of(cat("/proc/", process, "/wchan"));
  if (!name.empty() && name != "0") return printable(name, 100);
  std::istringstream stack(content_of(cat("/proc/", process, "/stack")));
  std::string address, function;
  stack >> address >> function;
  return function.empty() ? "unknown" : printable(function.substr(0, function.find('+')), 100);
}

namespace {

constexpr double kPatience = 10;  // factor on the slowest step, and for ranks that compute or access files
// Orders ranks of which all wait: the first one is named.
std::pair<bool, int64_t> suspicion(const RankSample& signs) { return {signs.serves, signs.activities}; }

constexpr double kComputingShare = 0.05;  // fraction of the sampling interval; a rank that uses more CPU time computes

}  // namespace

HangDetector::HangDetector(int num_ranks, double progress_seconds)
    : progress_seconds_(progress_seconds), ranks_(static_cast<size_t>(num_ranks)) {}

std::optional<int> HangDetector::look(double now, const std::vector<RankSample>& ranks) {
  if (progress_seconds_ <= 0) return std::nullopt;
  const bool was_away = looked_at_ < 0 || now - looked_at_ > kGap;
  for (const RankSample& signs : ranks) slowest_step_ = std::max(slowest_step_, signs.slowest_step);
  for (size_t rank = 0; rank < ranks.size(); ++rank) take(ranks_[rank], ranks[rank], now);
  looked_at_ = now;
  if (was_away) {
    forgive(now);
    return std::nullopt;
  }
  const Seen* fewest = nullptr;
  bool all_wait = true;
  for (const Seen& seen : ranks_) {
    if (seen.signs.ended) continue;
    const bool silent = is_silent(seen, now);
    if (silent && !seen.signs.waits) return static_cast<int>(&seen - ranks_.data());
    all_wait = all_wait && silent;
    if (!fewest || suspicion(seen.signs) < suspicion(fewest->signs)) fewest = &seen;
  }
  if (!all_wait || !fewest) return std::nullopt;
  return static_cast<int>(fewest - ranks_.data());
}

void HangDetector::take(Seen& seen, const RankSample& signs, double now) const {
  const bool begins = seen.signs.ended && !signs.ended;  // the previous sample counted the rank as ended
  const bool moved = signs.activities != seen.signs.activities || signs.io_bytes != seen.signs.io_bytes;
  if (begins || moved || signs.held_outside) seen.sign_at = now;
  if (signs.cpu_seconds - seen.signs.cpu_seconds > kComputingShare * (now - looked_at_)) seen.cpu_at = now;
  seen.signs = signs;
}

bool HangDetector::is_silent(const Seen& seen, double now) const {
  const double limit = std::max(progress_seconds_, kPatience * slowest_step_);
  if (now - seen.sign_at > kPatience * limit) return true;
  return !seen.signs.of_storage && now - std::max(seen.sign_at, seen.cpu_at) > limit;
}

void HangDetector::forgive(double now) {
  for (Seen& seen : ranks_) seen.sign_at = seen.cpu_at = now;
}

}  // namespace braid::launch
