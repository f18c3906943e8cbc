// Wording of errors. Nothing here decides what happens next.
#include "braid/base/errors.h"

#include "braid/base/text.h"

namespace braid {
namespace {

std::string lines(const std::vector<Problem>& problems) {
  std::vector<std::string> all;
  for (const auto& problem : problems) all.push_back(text(problem));
  return joined(all, "\n");
}

std::string sentence(const CommFailure& failure) {
  return cat(failure.op, " failed after ", fixed(failure.elapsed_seconds, 3), " s: rank ", failure.rank, ": ",
             failure.why);
}

std::string sentence(const std::string& path, int64_t offset, const std::string& why) {
  return offset < 0 ? cat(path, ": ", why) : cat(path, ": at byte ", offset, ": ", why);
}

}  // namespace

std::string text(const Problem& problem) {
  std::string line = problem.key;
  if (!problem.value.empty()) line += (line.empty() ? "" : " = ") + problem.value;
  if (!line.empty()) line += ": ";
  line += problem.rule;
  if (!problem.nearest.empty()) line += "; nearest valid is " + problem.nearest;
  return problem.place.empty() ? line : problem.place + ": " + line;
}

ConfigError::ConfigError(std::vector<Problem> problems)
    : std::runtime_error(lines(problems)), problems_(std::move(problems)) {}

CommError::CommError(CommFailure failure) : std::runtime_error(sentence(failure)), failure_(std::move(failure)) {}

IoError::IoError(std::string path, int64_t offset, std::string why)
    : std::runtime_error(sentence(path, offset, why)), path_(std::move(path)), offset_(offset) {}

void check(bool holds, std::string_view what, std::source_location where) {
  if (holds) return;
  throw InternalError(cat(where.file_name(), ":", where.line(), ": ", what));
}

}  // namespace braid
