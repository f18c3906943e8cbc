// Layout of the mapping and the words that any rank may write.
#include "braid/comm/shm/shared_world.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::comm::shm {
namespace {

constexpr int kClaimed = 1 << 20;  // users of an area that is not settled yet; more than a group has members

// Parts of the mapping one after another, each on a page of its own.
class Layout {
 public:
  size_t take(size_t bytes) {
    const size_t at = end_;
    end_ += (bytes + kPage - 1) / kPage * kPage;
    return at;
  }
  size_t end() const { return end_; }

 private:
  static constexpr size_t kPage = 4096;
  size_t end_ = 0;
};

template <class T>
T* array_at(std::byte* place, size_t count) {
  T* first = reinterpret_cast<T*>(place);
  for (size_t i = 0; i < count; ++i) new (first + i) T();
  return first;
}

}  // namespace

SharedWorld::SharedWorld(int num_ranks, int spin_turns) : num_ranks_(num_ranks), spin_turns_(spin_turns) {
  check(num_ranks > 0 && num_ranks <= kMaxRanks, cat("a world has 1 to ", kMaxRanks, " process ranks"));
  const size_t n = num_ranks, num_groups = max_groups_;
  Layout layout;
  const size_t ranks = layout.take(n * sizeof(RankWords)), groups = layout.take(num_groups * sizeof(GroupWords)),
               members = layout.take(num_groups * n * sizeof(MemberWords)),
               pairs = layout.take(n * n * sizeof(PairWords)),
               slots = layout.take(num_groups * n * Slot::kPerMember * sizeof(Slot)),
               rings = layout.take(n * n * PairWords::kRingBytes);
  mapped_bytes_ = layout.end();
  void* mapping =
      mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    throw IoError("shared memory", -1,
                  cat("cannot map ", human_bytes(static_cast<double>(mapped_bytes_)), ": ", std::strerror(errno)));
  }
  mapping_ = static_cast<std::byte*>(mapping);
  ranks_ = array_at<RankWords>(mapping_ + ranks, n);
  groups_ = array_at<GroupWords>(mapping_ + groups, num_groups);
  members_ = reinterpret_cast<MemberWords*>(mapping_ + members);
  pairs_ = array_at<PairWords>(mapping_ + pairs, n * n);
  slots_ = reinterpret_cast<Slot*>(mapping_ + slots);
  rings_ = mapping_ + rings;
  check(claim_group() == kWorldGroup, "the first area is the world's");
  settle_group(kWorldGroup, num_ranks);
}

SharedWorld::~SharedWorld() { munmap(mapping_, mapped_bytes_); }

void SharedWorld::fail(const Failure& failure) {
  if (board_.set_first(failure)) notify_all();
}

void SharedWorld::leave(int rank) {
  ranks_[rank].left.store(true);
  notify_all();
}

void SharedWorld::end(int rank) {
  ranks_[rank].ended.store(true);
  notify_all();
}

void SharedWorld::lose(int rank) {
  ranks_[rank].lost.store(true);
  notify_all();
}

GroupId SharedWorld::claim_group() {
  for (int32_t area = 0; area < max_groups_; ++area) {
    int nobody = 0;
    if (!groups_[area].users.compare_exchange_strong(nobody, kClaimed)) continue;
    const GroupId group{area, groups_[area].generation.fetch_add(1) + 1};
    for (int rank = 0; rank < num_ranks_; ++rank) new (&member(group, rank)) MemberWords();
    return group;
  }
  throw RunError(cat("no room for another group of process ranks: all ", max_groups_, " are in use"));
}

void SharedWorld::settle_group(GroupId group, int num_members) {
  groups_[group.area].users.fetch_add(num_members - kClaimed);
}

void SharedWorld::release_group(GroupId group) { groups_[group.area].users.fetch_sub(1); }

Slot& SharedWorld::slot(GroupId group, int rank, int64_t round) {
  return slots_[(group.area * num_ranks_ + rank) * Slot::kPerMember + round % Slot::kPerMember];
}

std::byte* SharedWorld::ring(int sender, int receiver) {
  return rings_ + (static_cast<int64_t>(sender) * num_ranks_ + receiver) * PairWords::kRingBytes;
}

void SharedWorld::notify_all() {
  for (int rank = 0; rank < num_ranks_; ++rank) ranks_[rank].notifier.notify();
}

}  // namespace braid::comm::shm
