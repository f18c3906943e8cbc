// Collects problems of several places into one error.
#pragma once

#include <vector>

#include "braid/base/errors.h"

namespace braid::cli {

// Runs `read`; the problems of its ConfigError join `found`.
template <class Read>
void collect_problems(std::vector<Problem>& found, const Read& read) {
  try {
    read();
  } catch (const ConfigError& error) {
    found.insert(found.end(), error.problems().begin(), error.problems().end());
  }
}

inline void throw_problems(std::vector<Problem> found) {
  if (!found.empty()) throw ConfigError(std::move(found));
}

}  // namespace braid::cli
