// The memory that the processes of one world share, mapped by their parent before it forks them: who has gone, bells,
// and the areas of groups and pairs of ranks. It knows its words, not what is done with them; nothing in it is a
// pointer.
//
// Slots and rings are touched only where they are used, so that most of the mapping is never memory.
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

// What one member of a group tells the others about the group's collectives. All counts go on from the group's
// beginning; written by the member alone.
struct alignas(64) MemberWords {
  std::atomic<int64_t> issued{0};    // collectives
  std::atomic<int64_t> posted{0};    // rounds whose input lies in the member's slot
  std::atomic<int64_t> combined{0};  // rounds whose share the member has combined
  std::atomic<int64_t> released{0};  // rounds whose slots the member has finished reading
};

// Where a member lays out a round for the others.
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

// A group's area, and a count that tells the groups apart which have used that area one after another.
struct GroupId {
  int32_t area = 0;
  uint32_t generation = 0;
  auto operator<=>(const GroupId&) const = default;
};

// Made by the parent, used by every process; each has a copy of this object. Thread-safe.
class SharedWorld final : public FailureState {
 public:
  static constexpr int kMaxRanks = 64;
  // Groups alive at a time. A group of one rank takes a place too, so their number grows with the ranks.
  static constexpr int max_groups(int num_ranks) { return std::max(256, 16 * num_ranks); }
  static constexpr GroupId kWorldGroup = {0, 1};

  struct Options {
    double deadline_seconds = 300;
    int spin_turns = 0;  // looks at a bell before a thread sleeps
  };

  // Throws IoError when the memory cannot be had.
  SharedWorld(int num_ranks, Options options);
  ~SharedWorld() override;
  SharedWorld(const SharedWorld&) = delete;
  SharedWorld& operator=(const SharedWorld&) = delete;

  int size() const { return num_ranks_; }
  const Options& options() const { return options_; }

  RankBoard& board() { return board_; }
  bool failed() const { return board_.failed(); }
  // The first call wins and wakes every sleeper.
  void fail(const Failure& failure) override;
  std::optional<Failure> failure() const override { return board_.failure(); }
  // Throws CommError with the first failure. `op` is what the caller was waiting for.
  [[noreturn]] void raise(std::string op, double elapsed_seconds) const;

  Notifier& bell(int rank) { return ranks_[rank].bell; }
  // The rank makes no more calls; all it has issued is visible before this.
  void leave(int rank);
  bool left(int rank) const { return ranks_[rank].left.load(); }
  // The rank has left and does not move on what it has issued.
  void end(int rank);
  bool ended(int rank) const { return ranks_[rank].ended.load(); }

  // Claims an unused area and resets its words. Throws RunError when all max_groups() are in use.
  GroupId claim_group();
  // The claimed area belongs to `num_members` ranks, each of which releases it once, possibly before this.
  void settle_group(GroupId group, int num_members);
  void release_group(GroupId group);

  MemberWords& member(GroupId group, int rank) { return members_[group.area * num_ranks_ + rank]; }
  Slot& slot(GroupId group, int rank, int64_t round);
  PairWords& pair(int sender, int receiver) { return pairs_[sender * num_ranks_ + receiver]; }
  std::byte* ring(int sender, int receiver);

 private:
  struct alignas(64) RankWords {
    Notifier bell;
    std::atomic<bool> left{false}, ended{false};
  };
  struct alignas(64) GroupWords {
    std::atomic<int> users{0};
    std::atomic<uint32_t> generation{0};
  };

  void ring_all();

  const int num_ranks_, max_groups_ = max_groups(num_ranks_);
  const Options options_;
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
