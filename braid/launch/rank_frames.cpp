// A question has a number, so that the answer to one that was given up is passed over.
#include "braid/launch/rank_frames.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/launch/packed.h"
#include "braid/launch/rank_life.h"

namespace braid {

std::string frame_of(const Texts& texts) { return *framed(packed(texts)); }

std::optional<Texts> next_frame(FrameReader& reader) {
  if (reader.messages().empty()) return std::nullopt;
  auto texts = unpacked<Texts>(reader.messages().front());
  check(texts && !texts->empty(), "frames of a rank's line are whole");
  reader.messages().pop_front();
  return texts;
}

void StoreOverLine::set(const std::string& key, const std::string& value) {
  const std::scoped_lock hold(lock_);
  write_all(line_, frame_of({kSet, key, value}));
}

// The first answer comes at once, whatever the time.
std::optional<std::string> StoreOverLine::get(const std::string& key, double seconds) {
  const std::scoped_lock hold(lock_);
  const std::string number = cat(++questions_);
  write_all(line_, frame_of({kGet, number, key}));
  const double until = now_seconds() + seconds;
  auto answer = next_about(number, std::numeric_limits<double>::infinity());
  if (answer->at(0) == kNotYet) answer = next_about(number, until);
  if (!answer) return std::nullopt;
  return answer->at(2);
}

void StoreOverLine::leave(const std::string& outcome) noexcept {
  lock_.lock();  // for ever
  leave_rank(line_, frame_of({kEnd, outcome}));
}

// The next frame about that question; nothing when `until` has passed.
std::optional<Texts> StoreOverLine::next_about(const std::string& number, double until) {
  for (;;) {
    if (auto frame = next_frame(heard_)) {
      if (frame->size() >= 2 && frame->at(1) == number) return frame;
      continue;
    }
    const double left = until - now_seconds();
    if (left <= 0) return std::nullopt;
    pollfd watched{line_, POLLIN, 0};
    if (poll(&watched, 1, static_cast<int>(std::min(left, 1.0) * 1000) + 1) <= 0) continue;
    char some[4096];
    const ssize_t count = read(line_, some, sizeof some);
    if (count > 0) heard_.add({some, static_cast<size_t>(count)});
    if (count == 0) throw CommError({"finding the other ranks", -1, 0, "the supervisor is gone"});
  }
}

}  // namespace braid
