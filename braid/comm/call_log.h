// The last calls of one rank in one group, for errors.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "braid/comm/call.h"

namespace braid::comm {

// Thread-safe. add() allocates nothing once the log is full.
class CallLog {
 public:
  static constexpr size_t kCalls = 64;

  void add(const Call& call);
  // Returns the last kCalls calls as texts, oldest first.
  std::vector<std::string> lines() const;
  // Returns the last call; nothing if there was none.
  std::optional<Call> last() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Call> calls_;  // a ring once it is full
  size_t next_ = 0;          // place of the oldest call in a full ring
};

// Returns "; the last call of rank 1 there is #16 all_reduce(Float[8], sum)"; empty without a call.
std::string last_call_text(int rank, const std::optional<Call>& last);

}  // namespace braid::comm
