// Two clocks a rank: since its last sign, and since it last computed.
#include "braid/launch/hang_detector.h"

#include <algorithm>

namespace braid::launch {
namespace {

constexpr double kPatience = 10;          // times as long, for who computes or is at files
constexpr double kComputingShare = 0.05;  // of the time between two looks

}  // namespace

HangDetector::HangDetector(int num_ranks, double progress_seconds)
    : progress_seconds_(progress_seconds), ranks_(static_cast<size_t>(num_ranks)) {}

std::optional<int> HangDetector::look(double now, const std::vector<RankSample>& ranks) {
  if (progress_seconds_ <= 0) return std::nullopt;
  const bool was_away = looked_at_ < 0 || now - looked_at_ > kGap;
  for (const RankSample& signs : ranks) slowest_step_ = std::max(slowest_step_, signs.slowest_step);
  for (size_t rank = 0; rank < ranks.size(); ++rank) take(ranks_[rank], ranks[rank], now);
  looked_at_ = now;
  if (was_away) {
    forgive(now);
    return std::nullopt;
  }
  const Seen* fewest = nullptr;
  bool all_wait = true;
  for (const Seen& seen : ranks_) {
    if (seen.signs.ended) continue;
    const bool silent = is_silent(seen, now);
    if (silent && !seen.signs.waits) return static_cast<int>(&seen - ranks_.data());
    all_wait = all_wait && silent;
    if (!fewest || seen.signs.activities < fewest->signs.activities) fewest = &seen;
  }
  if (!all_wait || !fewest) return std::nullopt;
  return static_cast<int>(fewest - ranks_.data());
}

void HangDetector::take(Seen& seen, const RankSample& signs, double now) const {
  const bool begins = seen.signs.ended && !signs.ended;  // it is heard of for the first time
  const bool moved = signs.activities != seen.signs.activities || signs.io_bytes != seen.signs.io_bytes;
  if (begins || moved || signs.held_outside) seen.sign_at = now;
  if (signs.cpu_seconds - seen.signs.cpu_seconds > kComputingShare * (now - looked_at_)) seen.cpu_at = now;
  seen.signs = signs;
}

bool HangDetector::is_silent(const Seen& seen, double now) const {
  const double limit = std::max(progress_seconds_, kPatience * slowest_step_);
  if (now - seen.sign_at > kPatience * limit) return true;
  return !seen.signs.of_storage && now - std::max(seen.sign_at, seen.cpu_at) > limit;
}

void HangDetector::forgive(double now) {
  for (Seen& seen : ranks_) seen.sign_at = seen.cpu_at = now;
}

}  // namespace braid::launch
