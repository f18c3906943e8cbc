// The list of faults in a tokenizer's files.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"

namespace braid::tokenize {

class Faults {
 public:
  explicit Faults(std::string path) : path_(std::move(path)) {}
  // Adds a fault at `where` in the files. Of many faults of one kind, add only the first few.
  void add(const std::string& where, const std::string& rule);
  bool any() const { return !problems_.empty(); }
  // Throws ConfigError (key "data.tokenizer") if there are faults.
  void throw_any() const;

 private:
  std::string path_;
  std::vector<Problem> problems_;
};

// Returns "7: a, b, c, d, e, ...": the number of names, and at most five of them.
std::string first_few(const std::vector<std::string>& names);

}  // namespace braid::tokenize
