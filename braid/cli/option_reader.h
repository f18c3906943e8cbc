// Words of a command's options as numbers. Faults are collected, so that all come in one message.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"

namespace braid {

class OptionReader {
 public:
  // A whole number of at least `least`; `least`, and a problem, when the text is none.
  int natural(const char* key, const std::string& text, int least);

  // A number of at least 0 into `value`, which stays as it is when the text is empty or, with a problem, no number.
  // `what` says what it is: "a time".
  void amount(const char* key, const std::string& text, const char* what, double& value);

  void add(Problem problem) { problems_.push_back(std::move(problem)); }
  // Once only: several schedules may have the same fault.
  void add_new(const Problem& problem);

  size_t num_problems() const { return problems_.size(); }
  void throw_problems();  // ConfigError with all of them, when there are any

 private:
  std::vector<Problem> problems_;
};

}  // namespace braid
