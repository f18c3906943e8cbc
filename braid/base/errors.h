// The three ways a thing can go wrong: the user is wrong, the world failed, we are wrong.
// It does not print and does not exit; the command line turns types into exit codes (2, 3, 70).
//
// what() may go to a terminal as it is, whatever names, values and bytes of files were put into an error: it is made of
// them with printable() (text.h), and each is shown to a sensible length. The parts that an error carries (problems(),
// path(), failure()) are as they were put in.
#pragma once

#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace braid {

// Errors of calls to the system about a path.

// Throws IoError: "cannot <action>: <the system's words>", with the free space where the disk is full.
[[noreturn]] void throw_system_fault(const std::string& path, const std::string& action, std::error_code code);
// The same of errno.
[[noreturn]] void throw_system_fault(const std::string& path, const std::string& action);

// The folder that `path` lies in; "." for a name alone.
std::string parent_folder(const std::string& path);

// One fault in what the user wrote.
struct Problem {
  std::string key;      // dotted, "model.heads"; empty when no single key is at fault
  std::string value;    // as written; empty when missing
  std::string rule;     // what must hold, "must be divisible by mesh.tensor (4)"
  std::string nearest;  // the nearest valid value or key; empty when there is none
  std::string place;    // the file and line it is written on, "run.toml:12"; empty when it stands in none

  bool operator==(const Problem&) const = default;
};

// "run.toml:12: model.heads = 6: must be divisible by mesh.tensor (4); nearest valid is 8"
std::string text(const Problem& problem);

// The user is wrong. Carries every problem found, never only the first. what() has one line per problem. Exit code 2.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(std::vector<Problem> problems);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

// The world failed: a peer died, a deadline passed, a group was aborted. Exit code 3.
struct CommFailure {
  std::string op;              // "all_reduce #17 on tensor"
  int rank = -1;               // world rank of the first that failed
  double elapsed_seconds = 0;  // since the operation began
  std::string why;
};
class CommError : public std::runtime_error {
 public:
  explicit CommError(CommFailure failure);
  const CommFailure& failure() const { return failure_; }

 private:
  CommFailure failure_;
};

// The world failed: a file. `offset` is the byte at fault, or -1. Exit code 3.
class IoError : public std::runtime_error {
 public:
  IoError(std::string path, int64_t offset, std::string why);
  const std::string& path() const { return path_; }
  int64_t offset() const { return offset_; }
  const std::string& why() const { return why_; }

 private:
  std::string path_;
  int64_t offset_;
  std::string why_;
};

// The world failed: training went where it cannot go on (a loss that is not finite). Nothing of it is published. Exit
// code 3.
class RunError : public std::runtime_error {
 public:
  explicit RunError(const std::string& why);
};

// We are wrong. Exit code 70.
class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& why);
};

// Throws InternalError naming file and line when `holds` is false. Never compiled out.
void check(bool holds, std::string_view what, std::source_location where = std::source_location::current());

}  // namespace braid
