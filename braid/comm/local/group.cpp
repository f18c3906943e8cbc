// Matching of calls: collectives by their number, messages by (sender, receiver, tag) in order, ranks by colour.
#include "braid/comm/local/group.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::comm::local {

void SplitCall::finish() {
  std::map<int, std::vector<int>> ranks_of;  // by colour, in the order of this group
  for (int rank = 0; rank < members_->size(); ++rank) ranks_of[requests_[rank].colour].push_back(rank);
  for (auto& [colour, ranks] : ranks_of) {
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return requests_[a].key < requests_[b].key; });
    auto members = std::make_shared<Membership>();
    members->name = requests_[ranks[0]].name;
    members->world_state = members_->world_state;
    for (int rank : ranks) members->world_ranks.push_back(members_->world_ranks[rank]);
    auto group = std::make_shared<Group>(std::move(members));
    for (int i = 0; i < static_cast<int>(ranks.size()); ++i) places_[ranks[i]] = {group, i};
  }
}

std::shared_ptr<Collective> Group::made(const Call& call, int64_t number) const {
  if (call.kind == CallKind::Split) return std::make_shared<SplitCall>(members_, call, number);
  if (call.kind == CallKind::Share) return std::make_shared<ShareCall>(members_, call, number);
  return std::make_shared<Collective>(members_, call, number);
}

std::shared_ptr<Collective> Group::join(int rank, int64_t number, const Call& call) {
  std::lock_guard lock(mutex_);
  Pending& pending = pending_[number];
  if (!pending.collective) {
    pending.collective = made(call, number);
    pending.first = rank;
  }
  std::shared_ptr<Collective> collective = pending.collective;
  if (!(collective->call() == call)) {
    refuse(rank, cat(name_of(call.kind), " #", number, " on ", members_->name),
           cat("called ", text(call), " where rank ", members_->world_ranks[pending.first], " called ",
               text(collective->call())));
  }
  if (++pending.joined == members_->size()) pending_.erase(number);
  return collective;
}

Group::Posted Group::post(int rank, const P2p& wanted) {
  bool sends = wanted.kind == P2p::Kind::Send;
  int party = sends ? Transfer::kSender : Transfer::kReceiver;
  Transfer::Route route{sends ? rank : wanted.peer, sends ? wanted.peer : rank, wanted.tag};
  std::lock_guard lock(mutex_);
  std::deque<Waiting>& waiting = messages_[route];
  std::shared_ptr<Transfer> transfer;
  if (waiting.empty() || waiting.front().party == party) {
    transfer = std::make_shared<Transfer>(members_, route, wanted.tensor);
    waiting.push_back({transfer, party});
  } else {
    transfer = waiting.front().transfer;
    waiting.pop_front();
    if (waiting.empty()) messages_.erase(route);
  }
  if (transfer->type() != wanted.tensor.scalar_type() || transfer->count() != wanted.tensor.numel()) {
    refuse(rank, transfer->label(),
           cat(sends ? "sends " : "receives ", c10::toString(wanted.tensor.scalar_type()), "[", wanted.tensor.numel(),
               "] where rank ", members_->world_ranks[wanted.peer], sends ? " receives " : " sends ",
               c10::toString(transfer->type()), "[", transfer->count(), "]"));
  }
  transfer->attach(party, wanted.tensor);
  return {transfer, party};
}

void Group::refuse(int rank, const std::string& op, const std::string& why) const {
  int world_rank = members_->world_ranks[rank];
  members_->world_state->fail({world_rank, world_rank, why});
  members_->world_state->raise(op, 0);
}

}  // namespace braid::comm::local
