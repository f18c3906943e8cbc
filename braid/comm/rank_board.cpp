// Shared memory in which any rank may record the first failure.
#include "braid/comm/rank_board.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <thread>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::comm {
namespace {

constexpr double kPatience = 1.0;  // seconds in which a rank writes down why the world failed

size_t board_bytes(size_t failure_bytes, int num_ranks) { return failure_bytes + num_ranks * sizeof(RankActivity); }

}  // namespace

// `state` is 0, then 1 while the winner of the first call writes, then 2.
struct alignas(64) RankBoard::FailureRecord {
  std::atomic<int> state{0};
  int rank = -1, reporter = -1;
  char why[4000] = {};
};

RankBoard::RankBoard(int num_ranks) : num_ranks_(num_ranks) {
  const size_t bytes = board_bytes(sizeof(FailureRecord), num_ranks);
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    throw IoError("shared memory", -1,
                  cat("cannot map ", human_bytes(static_cast<double>(bytes)), ": ", std::strerror(errno)));
  }
  failure_ = new (mapping) FailureRecord();
  activities_ = reinterpret_cast<RankActivity*>(failure_ + 1);
  for (int rank = 0; rank < num_ranks; ++rank) new (activities_ + rank) RankActivity();
}

RankBoard::~RankBoard() { munmap(failure_, board_bytes(sizeof(FailureRecord), num_ranks_)); }

bool RankBoard::failed() const { return failure_->state.load() != 0; }

bool RankBoard::set_first(const Failure& failure) {
  int none = 0;
  if (!failure_->state.compare_exchange_strong(none, 1)) return false;
  failure_->rank = failure.rank;
  failure_->reporter = failure.reporter;
  failure.why.copy(failure_->why, sizeof(failure_->why) - 1);
  failure_->state.store(2);
  return true;
}

std::optional<Failure> RankBoard::failure() const {
  if (!failed()) return std::nullopt;
  const double begin = now_seconds();
  while (failure_->state.load() == 1) {
    if (now_seconds() - begin > kPatience) return Failure{-1, -1, "a rank died while it reported a failure"};
    std::this_thread::yield();
  }
  return Failure{failure_->rank, failure_->reporter, failure_->why};
}

}  // namespace braid::comm
