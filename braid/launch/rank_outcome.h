// The outcome of a rank's function as bytes for another process: a value, or an error to be thrown there.
#pragma once

#include <string>
#include <vector>

#include "braid/comm/failure_state.h"

namespace braid::launch {

class RankOutcome {
 public:
  // It returned `value`.
  static std::string returned(std::string value);
  // It threw the exception being handled.
  static std::string thrown();
  // what() of the exception being handled, to abort the other ranks with.
  static std::string text_of_thrown();

  // Returns true if `bytes` are a whole result of returned() or thrown(): a rank may be killed while it writes, and
  // another node may send anything.
  static bool complete(const std::string& bytes);
  // Returns the value. If the function threw, throws its error: errors of base/errors.h with all their fields, others
  // as std::runtime_error. REQUIRES: `bytes` are complete.
  static std::string value(const std::string& bytes);
  // An error of the rank itself: bad data, a diverged loss, a failed check. Not one that reports the loss of a peer
  // (CommError), nor bytes that are not complete.
  static bool is_own_error(const std::string& bytes);
  // `bytes`, which are complete; an error says `note` behind its own text.
  static std::string with_note(const std::string& bytes, const std::string& note);
};

// A launch whose world has failed.
struct FailedLaunch {
  std::string what;  // "process ranks"
  comm::Failure failure;
  double elapsed_seconds = 0;
  std::string left_behind;  // ranks that did not end, in words; empty: none
};

// Throws one error for all ranks of a launch; `outcomes` are by rank, empty or cut short where a rank died. That of the
// reporter comes first. Where it only reports a peer, and that peer did not die, an error of any rank's own comes
// before it: a restart would run into it again. CommError where nobody has said what was wrong. `left_behind` is a note
// of it.
[[noreturn]] void throw_error_of(const FailedLaunch& launch, const std::vector<std::string>& outcomes);

}  // namespace braid::launch
