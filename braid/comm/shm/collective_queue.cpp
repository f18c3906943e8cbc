// Moving a line on. A word is stored after the bytes it tells of and read before them; bells ring after the word.
#include "braid/comm/shm/collective_queue.h"

#include "braid/base/text.h"

namespace braid::comm::shm {

CollectiveQueue::CollectiveQueue(std::shared_ptr<const Group> group, int rank)
    : group_(std::move(group)),
      rank_(rank),
      words_(group_->world.member(group_->id, rank)),
      slots_(group_->world_ranks.size()) {}

void CollectiveQueue::add(std::shared_ptr<Collective> collective) {
  const int64_t rounds = collective->rounds();
  entries_.push_back({std::move(collective), end_, end_ + rounds});
  end_ += rounds;
  words_.issued.fetch_add(1);
}

bool CollectiveQueue::advance() {
  bool any = false;
  while (!group_->world.failed() && (post() || combine() || read())) any = true;
  return any;
}

bool CollectiveQueue::idle() const { return entries_.empty() || entries_.front().collective->lost() >= 0; }

// A slot is free again when no member needs the round that lay in it.
bool CollectiveQueue::post() {
  const int64_t round = posted_;
  const Entry* entry = entry_of(round);
  if (!entry || !all_reached(&MemberWords::released, round - Slot::kPerMember + 1)) return false;
  entry->collective->post(round - entry->first, group_->world.slot(group_->id, rank_, round));
  words_.posted.store(posted_ = round + 1);
  tell_peers();
  return true;
}

bool CollectiveQueue::combine() {
  const int64_t round = combined_;
  if (round >= posted_ || !all_reached(&MemberWords::posted, round + 1)) return false;
  const Entry* entry = entry_of(round);
  const Collective& collective = *entry->collective;
  if (round == entry->first && !agree(collective, round)) return false;
  if (collective.shares()) collective.combine(round - entry->first, slots_of(round));
  words_.combined.store(combined_ = round + 1);
  if (collective.shares()) tell_peers();
  return true;
}

bool CollectiveQueue::read() {
  const int64_t round = released_;
  if (round >= combined_) return false;
  const Entry* entry = entry_of(round);
  if (entry->collective->shares() && !all_reached(&MemberWords::combined, round + 1)) return false;
  entry->collective->read(round - entry->first, slots_of(round));
  words_.released.store(released_ = round + 1);
  if (released_ == entry->end) {
    entry->collective->complete();
    entries_.pop_front();
    group_->world.bell(group_->world_ranks[rank_]).ring();  // another thread of this rank may sleep for it
  }
  tell_peers();
  return true;
}

CollectiveQueue::Entry* CollectiveQueue::entry_of(int64_t round) {
  for (Entry& entry : entries_) {
    if (round < entry.end) return &entry;
  }
  return nullptr;
}

bool CollectiveQueue::all_reached(std::atomic<int64_t> MemberWords::*count, int64_t value) const {
  for (int member = 0; member < group_->size(); ++member) {
    if ((group_->world.member(group_->id, member).*count).load() < value) return false;
  }
  return true;
}

void CollectiveQueue::tell_peers() const {
  for (int member = 0; member < group_->size(); ++member) {
    if (member != rank_) group_->world.bell(group_->world_ranks[member]).ring();
  }
}

std::span<Slot* const> CollectiveQueue::slots_of(int64_t round) {
  for (int member = 0; member < group_->size(); ++member) {
    slots_[member] = &group_->world.slot(group_->id, member, round);
  }
  return slots_;
}

// Members that agreed so far have the first round of their next call at the same place.
bool CollectiveQueue::agree(const Collective& mine, int64_t round) {
  const std::span<Slot* const> slots = slots_of(round);
  for (int member = 0; member < group_->size(); ++member) {
    const Call theirs = slots[member]->call;
    if (theirs == mine.call()) continue;
    const int me = group_->world_ranks[rank_];
    group_->world.fail(
        {me, me,
         cat("called ", text(mine.call()), " where rank ", group_->world_ranks[member], " called ", text(theirs))});
    return false;
  }
  return true;
}

}  // namespace braid::comm::shm
