// Reads words of a command's options as numbers. Problems are collected and reported in one message.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"

namespace braid::cli {

class OptionReader {
 public:
  // Returns a whole number of at least `least`. If the text is not such a number, adds a problem and returns `least`.
  int natural(const char* key, const std::string& text, int least);

  struct Amount {
    const char* what;  // "a time"
    double most;
  };
  // Reads a number from 0 to amount.most into `value`. `value` is unchanged if the text is empty. If the text is not
  // such a number, adds a problem and leaves `value` unchanged.
  void read(const char* key, const std::string& text, const Amount& amount, double& value);

  void add(Problem problem) { problems_.push_back(std::move(problem)); }
  // Adds a problem unless it was added before: several schedules may have the same fault.
  void add_new(const Problem& problem);

  size_t num_problems() const { return problems_.size(); }
  void throw_problems();  // throws ConfigError with all problems, if there are any

 private:
  std::vector<Problem> problems_;
};

}  // namespace braid::cli
