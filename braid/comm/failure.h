// The first failure of a world, as all its ranks learn it.
#pragma once

#include <string>

namespace braid::comm {

struct Failure {
  int rank;         // world rank at fault
  int reporter;     // world rank that noticed; its exception is the one to show
  std::string why;  // continues the sentence "rank 2: "
};

}  // namespace braid::comm
