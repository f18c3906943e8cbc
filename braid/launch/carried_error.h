// An error as bytes, to be thrown again in another process.
#pragma once

#include <string>

namespace braid {

// How a rank's function ended.
class CarriedError {
 public:
  // It returned.
  static std::string none();
  // The exception being handled.
  static std::string current();
  // what() of the exception being handled, to abort the other ranks with.
  static std::string current_text();

  // Whether `bytes` are all that none() or current() returned, and not only the beginning: a rank may be killed while
  // it writes.
  static bool complete(const std::string& bytes);
  // Throws what current() was called for: errors of base/errors.h with all they carry, others as std::runtime_error.
  // Returns when it was none(). `bytes` are complete.
  static void rethrow(const std::string& bytes);
};

}  // namespace braid
