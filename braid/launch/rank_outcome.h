// How a rank's function ended, as bytes for another process: with a value, or with an error to be thrown again there.
#pragma once

#include <string>

namespace braid {

class RankOutcome {
 public:
  // It returned `value`.
  static std::string returned(std::string value);
  // It threw the exception being handled.
  static std::string thrown();
  // what() of the exception being handled, to abort the other ranks with.
  static std::string text_of_thrown();

  // Whether `bytes` are what returned() or thrown() gives, and not only the beginning or something else: a rank may be
  // killed while it writes, and another node may lie.
  static bool complete(const std::string& bytes);
  // What was returned. Throws what thrown() was called for: errors of base/errors.h with all they carry, others as
  // std::runtime_error. `bytes` are complete.
  static std::string value(const std::string& bytes);
};

}  // namespace braid
