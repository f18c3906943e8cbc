// The wording of errors.
#include "braid/base/errors.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "braid/base/text.h"

namespace braid {

void throw_system_fault(const std::string& path, const std::string& action, std::error_code code) {
  std::string why = cat("cannot ", action, ": ", code.message());
  struct statvfs space {};
  if (code == std::errc::no_space_on_device && ::statvfs(parent_folder(path).c_str(), &space) == 0) {
    why += cat(" (", human_bytes(static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize)), " free)");
  }
  throw IoError(path, -1, why);
}

void throw_system_fault(const std::string& path, const std::string& action) {
  throw_system_fault(path, action, std::error_code(errno, std::generic_category()));
}

std::string parent_folder(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

namespace {

// Limits of the bytes shown for each part of a message. Paths are longer than values; a rule may contain a drawing.
constexpr ptrdiff_t kShownCalls = 3;
constexpr size_t kMostOfName = 1000, kMostOfValue = 300, kMostOfRule = 20'000;

// Makes our own text printable, since it may quote text from elsewhere.
std::string wording(std::string_view text) { return printable(text, kMostOfRule, LineBreaks::Kept); }

std::string lines(const std::vector<Problem>& problems) {
  std::vector<std::string> all;
  for (const auto& problem : problems) all.push_back(text(problem));
  return joined(all, "\n");
}

std::string sentence(const CommFailure& failure) {
  std::vector<std::string> newest(failure.calls.end() - std::min<ptrdiff_t>(kShownCalls, std::ssize(failure.calls)),
                                  failure.calls.end());
  for (std::string& call : newest) call = printable(call, kMostOfValue);
  return cat(wording(failure.op), " failed after ", fixed(failure.elapsed_seconds, 3),
             " s: ", failure.rank < 0 ? "" : cat("rank ", failure.rank, ": "), wording(failure.why),
             newest.empty() ? "" : cat("; the last calls of the rank that noticed it: ", joined(newest)));
}

std::string sentence(const std::string& path, int64_t offset, const std::string& why) {
  const std::string name = printable(path, kMostOfName);
  return offset < 0 ? cat(name, ": ", wording(why)) : cat(name, ": at byte ", offset, ": ", wording(why));
}

}  // namespace

std::string text(const Problem& problem) {
  std::string line = printable(problem.key, kMostOfName);
  if (!problem.value.empty()) line += (line.empty() ? "" : " = ") + printable(problem.value, kMostOfValue);
  if (!line.empty()) line += ": ";
  line += wording(problem.rule);
  if (!problem.nearest.empty()) line += "; nearest valid is " + printable(problem.nearest, kMostOfValue);
  return problem.place.empty() ? line : printable(problem.place, kMostOfName) + ": " + line;
}

ConfigError::ConfigError(std::vector<Problem> problems)
    : std::runtime_error(lines(problems)), problems_(std::move(problems)) {}

CommError::CommError(CommFailure failure) : std::runtime_error(sentence(failure)), failure_(std::move(failure)) {}

IoError::IoError(std::string path, int64_t offset, std::string why)
    : std::runtime_error(sentence(path, offset, why)), path_(std::move(path)), offset_(offset), why_(std::move(why)) {}

RunError::RunError(const std::string& why) : std::runtime_error(wording(why)) {}

InternalError::InternalError(const std::string& why) : std::logic_error(wording(why)) {}

void check(bool holds, std::string_view what, std::source_location where) {
  if (holds) return;
  throw InternalError(cat(where.file_name(), ":", where.line(), ": ", what));
}

}  // namespace braid
