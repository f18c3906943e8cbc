// A sequence lock: a writer makes the turn odd, writes, and makes it even. A reader accepts a copy if the turn is even
// and did not change meanwhile.
#include "braid/comm/rank_activity.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/text.h"

namespace braid::comm {
namespace {

constexpr int kLooks = 1000;  // maximum attempts to read; a writer that was killed leaves the turn odd

}  // namespace

template <size_t kBytes>
void SharedText<kBytes>::write(std::string_view text) {
  char bytes[kBytes] = {};
  text.copy(bytes, kBytes - 1);
  turn_.fetch_add(1);
  for (size_t i = 0; i < kWords; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i * sizeof word, sizeof word);
    words_[i].store(word);
  }
  turn_.fetch_add(1);
}

template <size_t kBytes>
std::string SharedText<kBytes>::read() const {
  char bytes[kBytes] = {};
  for (int look = 0; look < kLooks; ++look) {
    const uint32_t before = turn_.load();
    for (size_t i = 0; i < kWords; ++i) {
      const uint64_t word = words_[i].load();
      std::memcpy(bytes + i * sizeof word, &word, sizeof word);
    }
    if (before % 2 == 0 && turn_.load() == before) return std::string(bytes, strnlen(bytes, kBytes));
  }
  return "(killed while it recorded its activity)";
}

std::string ActivitySnapshot::text() const {
  char shown[32];
  std::snprintf(shown, sizeof shown, "%.1f s", seconds);
  const std::string wait = waits_in.empty() ? "" : cat("waits for ", waits_in);
  std::vector<std::string> parts{what, wait, aside};
  std::erase(parts, "");
  if (parts.empty()) return "";
  parts.emplace_back(shown);
  return joined(parts);
}

void RankActivity::begin(std::string_view what) {
  of_storage_ = of_people_ = false;
  what_.write(what);
  since_ = now_seconds();
  ++count_;
}

void RankActivity::begin_storage(std::string_view what) {
  begin(what);
  of_storage_ = true;
}

void RankActivity::begin_telling(std::string_view what) {
  begin(what);
  of_people_ = true;
}

void RankActivity::end_of_step(double seconds) { slowest_step_ = std::max(slowest_step_.load(), seconds); }

// If several threads begin to wait at the same time, one of them is shown.
void RankActivity::begin_wait(std::string_view operation) {
  ++waits_;
  if (writing_wait_.exchange(true)) return;
  waits_in_.write(operation);
  writing_wait_ = false;
}

void RankActivity::end_wait() { --waits_; }

void RankActivity::begin_serving(std::string_view requests) {
  begin_wait(requests);
  serves_ = true;
}

void RankActivity::end_serving() {
  serves_ = false;
  end_wait();
}

void RankActivity::begin_answer() {
  ++answers_;
  ++count_;
}

// As with waits, one of several threads is shown.
void RankActivity::begin_aside(std::string_view what) {
  ++asides_;
  ++count_;
  if (writing_aside_.exchange(true)) return;
  aside_.write(what);
  writing_aside_ = false;
}

void RankActivity::end_aside() { --asides_; }

ActivitySnapshot RankActivity::look() const {
  ActivitySnapshot now;
  now.count = count_;
  now.what = what_.read();
  const bool answers = answers_ > 0;
  now.serves = serves_ && !answers;
  if (waits_ > 0 && !answers) now.waits_in = waits_in_.read();
  now.seconds = since_ == 0 ? 0 : now_seconds() - since_;
  now.slowest_step = slowest_step_;
  if (asides_ > 0) now.aside = aside_.read();
  now.of_storage = of_storage_ || asides_ > 0;
  now.of_people = of_people_;
  return now;
}

template class SharedText<128>;
template class SharedText<256>;

}  // namespace braid::comm
