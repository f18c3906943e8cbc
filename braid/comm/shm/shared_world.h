// The memory that the process ranks of one host share: the end of ranks, notifiers, and areas for groups and for pairs
// of ranks. The parent maps it before it forks the ranks. It holds no pointers.
//
// Slots and rings that are not used are never touched, so most of the mapping takes no memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "braid/comm/checked_communicator.h"
#include "braid/comm/rank_board.h"
#include "braid/comm/shm/notifier.h"

namespace braid::comm::shm {

// A member's progress in the collectives of a group. The counts begin with the group; only the member writes them.
struct alignas(64) MemberWords {
  std::atomic<int64_t> issued{0};    // collectives
  std::atomic<int64_t> posted{0};    // rounds whose input lies in the member's slot
  std::atomic<int64_t> combined{0};  // rounds of which the member has combined its part
  std::atomic<int64_t> released{0};  // rounds whose slots the member has finished reading
};

// Memory into which a member writes a round for the others.
struct alignas(64) Slot {
  static constexpr int64_t kBytes = 256 << 10;
  static constexpr int64_t kPerMember = 2;  // rounds t and t + 1 overlap

  Call call;
  alignas(64) std::byte bytes[kBytes];
};

// The stream of messages from one rank of the world to another.
struct PairWords {
  static constexpr int64_t kRingBytes = 1 << 20;

  alignas(64) std::atomic<int64_t> issued{0};   // messages; by the sender
  alignas(64) std::atomic<int64_t> written{0};  // bytes; by the sender
  alignas(64) std::atomic<int64_t> read{0};     // bytes; by the receiver
};

// A group's area, and a count that distinguishes the groups that have used the area one after another.
struct GroupId {
  int32_t area = 0;
  uint32_t generation = 0;

  static constexpr GroupId of(int64_t packed) {
    return {static_cast<int32_t>(packed & 0xffffffff), static_cast<uint32_t>(packed >> 32)};
  }
  constexpr int64_t packed() const { return static_cast<int64_t>(generation) << 32 | area; }
  auto operator<=>(const GroupId&) const = default;
};

// Created by the parent and used by every process; each has a copy of this object. Thread-safe.
class SharedWorld final : public FailureState {
 public:
  static constexpr int kMaxRanks = 64;
  // The most groups that exist at a time. A group of one rank takes an area too, so more ranks need more groups.
  static constexpr int max_groups(int num_ranks) { return std::max(256, 16 * num_ranks); }
  static constexpr GroupId kWorldGroup = {0, 1};

  // A thread reads its notifier `spin_turns` times before it sleeps. Throws IoError if the memory cannot be mapped.
  explicit SharedWorld(int num_ranks, int spin_turns = 0);
  ~SharedWorld() override;
  SharedWorld(const SharedWorld&) = delete;
  SharedWorld& operator=(const SharedWorld&) = delete;

  int size() const { return num_ranks_; }
  int spin_turns() const { return spin_turns_; }

  RankBoard& board() { return board_; }
  bool failed() const { return board_.failed(); }
  // The first call wins and wakes all ranks.
  void fail(const Failure& failure) override;
  std::optional<Failure> failure() const override { return board_.failure(); }

  Notifier& notifier(int rank) { return ranks_[rank].notifier; }
  // Marks that the rank makes no more calls. Everything that it has issued is visible before this.
  void leave(int rank);
  bool left(int rank) const { return ranks_[rank].left.load(); }
  // Marks that the rank has left, and neither sends nor receives any more.
  void end(int rank);
  bool ended(int rank) const { return ranks_[rank].ended.load(); }
  // Marks that the rank's process has died and that the world goes on without it (RankActivity::allow_loss()). Called
  // by the supervisor once nothing runs in that process any more.
  void lose(int rank);
  bool lost(int rank) const { return ranks_[rank].lost.load(); }

  // Claims an unused area and resets its words. Throws RunError if all max_groups() are in use.
  GroupId claim_group();
  // Sets the number of ranks that use a claimed area. Each of them releases it once, possibly before this.
  void settle_group(GroupId group, int num_members);
  void release_group(GroupId group);

  MemberWords& member(GroupId group, int rank) { return members_[group.area * num_ranks_ + rank]; }
  Slot& slot(GroupId group, int rank, int64_t round);
  PairWords& pair(int sender, int receiver) { return pairs_[sender * num_ranks_ + receiver]; }
  std::byte* ring(int sender, int receiver);

 private:
  struct alignas(64) RankWords {
    Notifier notifier;
    std::atomic<bool> left{false}, ended{false}, lost{false};
  };
  struct alignas(64) GroupWords {
    std::atomic<int> users{0};
    std::atomic<uint32_t> generation{0};
  };

  void notify_all();

  const int num_ranks_, max_groups_ = max_groups(num_ranks_);
  const int spin_turns_;
  RankBoard board_{num_ranks_};
  size_t mapped_bytes_ = 0;
  std::byte* mapping_ = nullptr;
  RankWords* ranks_ = nullptr;
  GroupWords* groups_ = nullptr;
  MemberWords* members_ = nullptr;
  PairWords* pairs_ = nullptr;
  Slot* slots_ = nullptr;
  std::byte* rings_ = nullptr;
};

}  // namespace braid::comm::shm
