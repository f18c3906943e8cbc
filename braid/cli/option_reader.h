// Words of a command's options as numbers. Faults are collected, so that all come in one message.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"

namespace braid::cli {

class OptionReader {
 public:
  // A whole number of at least `least`; `least`, and a problem, when the text is none.
  int natural(const char* key, const std::string& text, int least);

  struct Amount {
    const char* what;  // "a time"
    double most;
  };
  // A number from 0 to amount.most into `value`, which stays as it is when the text is empty or, with a problem, no
  // such number.
  void read(const char* key, const std::string& text, const Amount& amount, double& value);

  void add(Problem problem) { problems_.push_back(std::move(problem)); }
  // Once only: several schedules may have the same fault.
  void add_new(const Problem& problem);

  size_t num_problems() const { return problems_.size(); }
  void throw_problems();  // ConfigError with all of them, when there are any

 private:
  std::vector<Problem> problems_;
};

}  // namespace braid::cli
