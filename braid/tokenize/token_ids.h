// Checks of the ids in a vocabulary while it is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/tokenize/faults.h"

namespace braid::tokenize {

class TokenIds {
 public:
  // Sets the number of tokens in the file's vocabulary. Ids may exceed it by 2^20, which limits the memory that one
  // large id can cost.
  void set_num_listed(int64_t num_listed) { num_listed_ = num_listed; }
  // Takes the id for the token `name`. Returns false if the id is out of range or already taken.
  bool take(int64_t id, const std::string& name);
  // Records a token whose id is not a whole number.
  void refuse(const std::string& name) { bad_.push_back(name); }
  void add_faults(Faults& faults) const;

 private:
  int64_t num_listed_ = 0;
  std::vector<bool> taken_;
  std::vector<std::string> bad_;
};

}  // namespace braid::tokenize
