// The ring of calls.
#include "braid/comm/call_log.h"

#include "braid/base/text.h"

namespace braid::comm {

void CallLog::add(const Call& call) {
  const std::scoped_lock hold(mutex_);
  if (calls_.size() < kCalls) return calls_.push_back(call);
  calls_[next_] = call;
  next_ = (next_ + 1) % kCalls;
}

std::vector<std::string> CallLog::lines() const {
  const std::scoped_lock hold(mutex_);
  std::vector<std::string> lines;
  for (size_t i = 0; i < calls_.size(); ++i) lines.push_back(numbered_text(calls_[(next_ + i) % calls_.size()]));
  return lines;
}

std::optional<Call> CallLog::last() const {
  const std::scoped_lock hold(mutex_);
  if (calls_.empty()) return std::nullopt;
  return calls_[(next_ + calls_.size() - 1) % calls_.size()];
}

std::string last_call_text(int rank, const std::optional<Call>& last) {
  return last ? cat("; the last call of rank ", rank, " there is ", numbered_text(*last)) : "";
}

}  // namespace braid::comm
