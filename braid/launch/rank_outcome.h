// The outcome of a rank's function as bytes for another process: a value, or an error to be thrown there.
#pragma once

#include <string>
#include <vector>

#include "braid/comm/failure_state.h"

namespace braid::launch {

class RankOutcome {
 public:
  // Encodes that the function returned `value`.
  static std::string returned(std::string value);
  // Encodes that the function threw the exception being handled.
  static std::string thrown();
  // Returns what() of the exception being handled, for the failure that aborts the other ranks.
  static std::string text_of_thrown();

  // Returns true if `bytes` are a whole result of returned() or thrown(). They are not if a rank was killed while it
  // wrote, or if another node sent invalid bytes.
  static bool complete(const std::string& bytes);
  // Returns the value. If the function threw, throws its error: errors of base/errors.h with all their fields, others
  // as std::runtime_error. REQUIRES: `bytes` are complete.
  static std::string value(const std::string& bytes);
  // Returns true for an error of the rank itself: bad data, a diverged loss, a failed check. Returns false for a value,
  // for a CommError, which reports the failure of a peer, and for bytes that are not complete.
  static bool is_own_error(const std::string& bytes);
  // Returns `bytes` with `note` appended to the text of their error; a value stays as it is.
  // REQUIRES: `bytes` are complete.
  static std::string with_note(const std::string& bytes, const std::string& note);
};

// A launch whose world has failed.
struct FailedLaunch {
  std::string what;  // "process ranks"
  comm::Failure failure;
  double elapsed_seconds = 0;
  std::string left_behind;  // ranks whose processes did not end, in words; empty: none
};

// Throws one error for all ranks of a launch. `outcomes` are by rank; the outcome of a rank that died is empty or cut
// short. Failure (failure_state.h) names the reporter and the rank that it blames. The error is the first of these that
// exists:
// 1. the reporter's own error (is_own_error());
// 2. another rank's own error, if the rank that the reporter blames did not die: a restart would meet that error again;
// 3. the reporter's CommError;
// 4. a CommError with the text of `launch.failure`, and the operation and last calls of a rank that waited meanwhile.
// `launch.left_behind` is appended to the error's text.
[[noreturn]] void throw_error_of(const FailedLaunch& launch, const std::vector<std::string>& outcomes);

}  // namespace braid::launch
