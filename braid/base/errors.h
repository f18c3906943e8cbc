// The three ways in which things go wrong: the user is wrong, the world failed, or braid is wrong. Errors neither print
// nor exit; the command line turns their types into exit codes (2, 3, 70).
//
// what() may be printed to a terminal as it is. Names, values and bytes of files in it have passed through printable()
// (text.h), and each is cut to a sensible length. The parts that an error carries (problems(), path(), failure()) are
// unchanged.
#pragma once

#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace braid {

// Throws IoError "cannot <action>: <the system's message>". If the disk is full, the message also gives its free space.
[[noreturn]] void throw_system_fault(const std::string& path, const std::string& action, std::error_code code);
// Same as above, with errno as the code.
[[noreturn]] void throw_system_fault(const std::string& path, const std::string& action);

// Returns the folder that contains `path`; "." for a bare name.
std::string parent_folder(const std::string& path);

// One fault in the user's input.
struct Problem {
  std::string key;      // dotted key, "model.heads"; empty if no single key is at fault
  std::string value;    // value as the user wrote it; empty if missing
  std::string rule;     // the rule that must hold: "must be divisible by mesh.tensor (4)"
  std::string nearest;  // nearest valid value or key; empty if there is none
  std::string place;    // file and line of the value, "run.toml:12"; empty if it is not in a file

  bool operator==(const Problem&) const = default;
};

// Returns "run.toml:12: model.heads = 6: must be divisible by mesh.tensor (4); nearest valid is 8".
std::string text(const Problem& problem);

// The user is wrong. Carries every problem found, not only the first. what() has one line per problem. Exit code 2.
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
  int rank = -1;               // world rank of the first rank that failed
  double elapsed_seconds = 0;  // time since the operation began
  std::string why;
  // Last calls of the rank that throws, in the group of `op`, oldest first; what() has the newest of them.
  std::vector<std::string> calls = {};
};
class CommError : public std::runtime_error {
 public:
  explicit CommError(CommFailure failure);
  const CommFailure& failure() const { return failure_; }

 private:
  CommFailure failure_;
};

// The world failed: an operation on a file. `offset` is the byte at fault, or -1. Exit code 3.
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

// The world failed: a run cannot start or continue, for example because the loss is not finite. Nothing of the failed
// step is published. Exit code 3.
class RunError : public std::runtime_error {
 public:
  explicit RunError(const std::string& why);
};

// braid is wrong. Exit code 70.
class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& why);
};

// Throws InternalError naming file and line if `holds` is false. Never compiled out.
void check(bool holds, std::string_view what, std::source_location where = std::source_location::current());

}  // namespace braid
