// The three steps. A word is stored after the bytes it describes and read before them; peers are notified after the
// word.
//
// A slot in a round holds what each member is to receive from its owner:
//
//   all_reduce by shares   share m at its place in the stretch: for member m. The owner's share is its result: for all
//   reduce_scatter,
//     all_to_all           the stretch of chunk m, the chunks one after another: for member m
//   others                 the stretch: for all
#include "braid/comm/shm/slot_collectives.h"

#include <algorithm>
#include <cstring>

#include "braid/base/text.h"
#include "braid/comm/shm/shm_transport.h"

namespace braid::comm::shm {
namespace {

using transport::Collective;
using transport::Stall;

constexpr int64_t kWholeBytes = 8 << 10;  // up to here, combining everything on every rank is faster than one more step

// The offset in a slot of what is for `member`.
int64_t offset_for(const Collective& collective, const Collective::Stretch& stretch, int member) {
  if (!collective.sends_parts()) return 0;
  if (!collective.by_shares()) return member * collective.stretch_bytes();
  const std::byte* const begin = collective.result(stretch, 0).data;
  return collective.result(stretch, member).data - begin;
}

void copy_bytes(std::byte* to, const std::byte* from, int64_t count) {
  if (count > 0) std::memcpy(to, from, static_cast<size_t>(count));
}

}  // namespace

SlotCollectives::SlotCollectives(std::shared_ptr<const transport::Group> group, ShmTransport& transport)
    : CollectiveQueue(group),
      transport_(transport),
      world_(transport.world()),
      id_(GroupId::of(group->id)),
      rank_(group->rank),
      words_(world_.member(id_, rank_)),
      inputs_(group->world_ranks.size()) {
  transport_.add(*this);
}

SlotCollectives::~SlotCollectives() { transport_.remove(*this); }

// Of two ranks, shares move as many bytes as the whole, in one more step.
SlotCollectives::Cut SlotCollectives::cut(const Call& call) const {
  const int n = group()->size();
  const auto element_bytes = static_cast<int64_t>(c10::elementSize(call.type));
  const bool in_chunks = call.kind == CallKind::ReduceScatter || call.kind == CallKind::AllToAll;
  const int64_t chunk_bytes = Slot::kBytes / (in_chunks ? n : 1) / Collective::kCacheLine * Collective::kCacheLine;
  const bool shares = call.kind == CallKind::AllReduce && n > 2 && call.chunk * element_bytes > kWholeBytes;
  return {shares ? Algorithm::Shares : Algorithm::Whole, chunk_bytes / element_bytes};
}

void SlotCollectives::add(std::shared_ptr<Collective> collective) {
  transport_.change([&] {
    const int64_t rounds = collective->num_rounds();
    entries_.push_back({std::move(collective), end_, end_ + rounds});
    end_ += rounds;
    words_.issued.fetch_add(1);
  });
}

bool SlotCollectives::idle() const {
  const auto hold = transport_.lock();
  return entries_.empty() || lost_rank(*entries_.front().collective) >= 0;
}

void SlotCollectives::stop() {
  std::deque<Entry> dropped;  // entries and this keep each other alive
  const auto hold = transport_.lock();
  dropped.swap(entries_);
}

Stall SlotCollectives::stall(const Collective& collective) const {
  const auto hold = transport_.lock();
  const Collective& first = collective.done() || entries_.empty() ? collective : *entries_.front().collective;
  Stall stall{.label = first.label()};
  for (int member = 0; member < group()->size(); ++member) {
    if (!has_arrived(first, member)) stall.missing.push_back(group()->world_ranks[member]);
  }
  if (!collective.done()) stall.lost = lost_rank(first);
  std::ranges::sort(stall.missing);
  return stall;
}

// The slot of the round that a member has posted last. A member that is asked about posts nothing meanwhile, as a rule;
// if it does, the text of the call may be torn.
std::optional<Call> SlotCollectives::last_call_of(int world_rank) const {
  const std::vector<int>& ranks = group()->world_ranks;
  const int member = static_cast<int>(std::ranges::find(ranks, world_rank) - ranks.begin());
  const int64_t posted = world_.member(id_, member).posted.load();
  return posted == 0 ? std::nullopt : std::optional(slot(member, posted - 1).call);
}

bool SlotCollectives::advance() {
  bool any = false;
  while (!world_.failed() && (post() || combine() || read())) any = true;
  return any;
}

// A slot is free again when no member needs the round that lay in it.
bool SlotCollectives::post() {
  const int64_t round = posted_;
  const Entry* entry = entry_of(round);
  if (!entry || !all_reached(&MemberWords::released, round - Slot::kPerMember + 1)) return false;
  const Collective& collective = *entry->collective;
  const auto stretch = collective.stretch(round - entry->first);
  Slot& own = slot(rank_, round);
  own.call = collective.call();
  for (int member = 0; member < group()->size(); ++member) {
    if (member == rank_) continue;
    const auto [data, count] = collective.sent_first(stretch, member);
    copy_bytes(own.bytes + offset_for(collective, stretch, member), data, count);
    if (!collective.sends_parts()) break;
  }
  words_.posted.store(posted_ = round + 1);
  notify_peers();
  return true;
}

bool SlotCollectives::combine() {
  const int64_t round = combined_;
  if (round >= posted_ || !all_reached(&MemberWords::posted, round + 1)) return false;
  const Entry* entry = entry_of(round);
  const Collective& collective = *entry->collective;
  if (round == entry->first && !agree(collective, round)) return false;
  if (collective.by_shares()) {
    const auto stretch = collective.stretch(round - entry->first);
    const int64_t offset = offset_for(collective, stretch, rank_);
    set_inputs(round, offset);
    collective.combine(stretch, inputs_, slot(rank_, round).bytes + offset);
  }
  words_.combined.store(combined_ = round + 1);
  if (collective.by_shares()) notify_peers();
  return true;
}

bool SlotCollectives::read() {
  const int64_t round = released_;
  if (round >= combined_) return false;
  const Entry* entry = entry_of(round);
  const Collective& collective = *entry->collective;
  if (collective.by_shares() && !all_reached(&MemberWords::combined, round + 1)) return false;
  const auto stretch = collective.stretch(round - entry->first);
  if (collective.combines() && !collective.by_shares()) {
    set_inputs(round, offset_for(collective, stretch, rank_));
    collective.combine(stretch, inputs_);
  } else {
    for (int member = 0; member < group()->size(); ++member) {
      if (member == rank_) continue;
      const auto [data, count] =
          collective.by_shares() ? collective.result(stretch, member) : collective.received_first(stretch, member);
      const int owner_part = collective.by_shares() ? member : rank_;
      copy_bytes(data, slot(member, round).bytes + offset_for(collective, stretch, owner_part), count);
    }
    collective.copy_own(stretch);
  }
  words_.released.store(released_ = round + 1);
  if (released_ == entry->end) {
    entry->collective->complete();
    entries_.pop_front();
    world_.notifier(group()->world_rank()).notify();  // another thread of this rank may sleep for it
  }
  notify_peers();
  return true;
}

SlotCollectives::Entry* SlotCollectives::entry_of(int64_t round) {
  for (Entry& entry : entries_) {
    if (round < entry.end) return &entry;
  }
  return nullptr;
}

bool SlotCollectives::all_reached(std::atomic<int64_t> MemberWords::*count, int64_t value) const {
  for (int member = 0; member < group()->size(); ++member) {
    if ((world_.member(id_, member).*count).load() < value) return false;
  }
  return true;
}

bool SlotCollectives::has_arrived(const Collective& collective, int member) const {
  return world_.member(id_, member).issued.load() > collective.number();
}

// Everything that a rank has issued is visible before it leaves, so that is read first.
int SlotCollectives::lost_rank(const Collective& collective) const {
  for (int member = 0; member < group()->size(); ++member) {
    const int rank = group()->world_ranks[member];
    if (world_.left(rank) && !has_arrived(collective, member)) return rank;
  }
  return -1;
}

void SlotCollectives::notify_peers() const {
  for (int member = 0; member < group()->size(); ++member) {
    if (member != rank_) world_.notifier(group()->world_ranks[member]).notify();
  }
}

Slot& SlotCollectives::slot(int member, int64_t round) const { return world_.slot(id_, member, round); }

// Members that agreed so far have the first round of their next call at the same place.
bool SlotCollectives::agree(const Collective& mine, int64_t round) {
  for (int member = 0; member < group()->size(); ++member) {
    const Call theirs = slot(member, round).call;
    if (theirs == mine.call()) continue;
    const int me = group()->world_rank();
    world_.fail({me, me, mismatch_text(mine.call(), group()->world_ranks[member], theirs, group()->name)});
    return false;
  }
  return true;
}

void SlotCollectives::set_inputs(int64_t round, int64_t offset) {
  for (int member = 0; member < group()->size(); ++member) inputs_[member] = slot(member, round).bytes + offset;
}

}  // namespace braid::comm::shm
