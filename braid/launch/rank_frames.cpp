// Each question has a number, so that a rank ignores the answer to a question that it has given up.
#include "braid/launch/rank_frames.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/packed.h"
#include "braid/base/text.h"
#include "braid/launch/rank_life.h"

namespace braid::launch {

template <class Pack>
void members(Pack& pack, SetRequest& sets) {
  pack(sets.key, sets.value);
}
template <class Pack>
void members(Pack& pack, GetRequest& asks) {
  pack(asks.question, asks.key);
}
template <class Pack>
void members(Pack& pack, EndReport& ends) {
  pack(ends.outcome);
}
template <class Pack>
void members(Pack& pack, GetAnswer& answer) {
  pack(answer.question, answer.value);
}

std::string frame_of(RankFrame frame) { return *control::framed(packed(std::move(frame))); }

std::optional<RankFrame> next_frame(control::FrameReader& reader) {
  if (reader.messages().empty()) return std::nullopt;
  auto frame = unpacked<RankFrame>(reader.messages().front());
  if (!frame) throw CommError({"the connection of a rank", -1, 0, "has a malformed frame"});
  reader.messages().pop_front();
  return frame;
}

void StoreOverStream::set(const std::string& key, const std::string& value) {
  const std::scoped_lock hold(lock_);
  write_all(line_, frame_of(SetRequest{key, value}));
}

// The supervisor sends the first answer at once, so waiting for it has no time limit.
std::optional<std::string> StoreOverStream::get(const std::string& key, double seconds) {
  const std::scoped_lock hold(lock_);
  const int64_t question = ++questions_;
  write_all(line_, frame_of(GetRequest{question, key}));
  const double until = now_seconds() + seconds;
  auto answer = next_about(question, std::numeric_limits<double>::infinity());
  if (answer && !answer->value) answer = next_about(question, until);
  return answer ? answer->value : std::nullopt;
}

void StoreOverStream::leave(const std::string& outcome) noexcept {
  lock_.lock();  // never released: other threads send nothing more
  leave_rank(line_, frame_of(EndReport{outcome}));
}

// Returns the next answer to the question; nullopt once `until` has passed.
std::optional<GetAnswer> StoreOverStream::next_about(int64_t question, double until) {
  for (;;) {
    if (const auto frame = next_frame(reader_)) {
      const auto* answer = std::get_if<GetAnswer>(&*frame);
      if (answer && answer->question == question) return *answer;
      continue;
    }
    const double left = until - now_seconds();
    if (left <= 0) return std::nullopt;
    pollfd watched{line_, POLLIN, 0};
    if (poll(&watched, 1, static_cast<int>(std::min(left, 1.0) * 1000) + 1) <= 0) continue;
    char some[4096];
    const ssize_t count = read(line_, some, sizeof some);
    if (count > 0) reader_.add({some, static_cast<size_t>(count)});
    if (count == 0) throw CommError({"finding the other ranks", -1, 0, "the supervisor is gone"});
  }
}

}  // namespace braid::launch
