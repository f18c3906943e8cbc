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
    std::vector<int> world_ranks;
    for (int rank : ranks) world_ranks.push_back(members_->world_ranks[rank]);
    auto members =
        std::make_shared<Membership>(requests_[ranks[0]].name, std::move(world_ranks), members_->world_state);
    auto group = std::make_shared<Group>(std::move(members));
    for (int i = 0; i < static_cast<int>(ranks.size()); ++i) places_[ranks[i]] = {group, i};
  }
}

std::shared_ptr<Collective> Group::made(const Call& call) const {
  if (call.kind == CallKind::Split) return std::make_shared<SplitCall>(members_, call);
  if (call.kind == CallKind::Share) return std::make_shared<ShareCall>(members_, call);
  return std::make_shared<Collective>(members_, call);
}

std::shared_ptr<Collective> Group::join(int rank, const Call& call) {
  members_->logs[rank]->add(call);
  std::lock_guard lock(mutex_);
  Pending& pending = pending_[call.number];
  if (!pending.collective) {
    pending.collective = made(call);
    pending.first = rank;
  }
  std::shared_ptr<Collective> collective = pending.collective;
  if (!(collective->call() == call)) {
    refuse(rank, label_of(call, members_->name),
           mismatch_text(call, members_->world_ranks[pending.first], collective->call(), members_->name));
  }
  if (++pending.joined == members_->size()) pending_.erase(call.number);
  return collective;
}

Group::Posted Group::post(int rank, const Call& call, const at::Tensor& tensor) {
  members_->logs[rank]->add(call);
  bool sends = call.kind == CallKind::Send;
  int party = sends ? Transfer::kSender : Transfer::kReceiver;
  Transfer::Route route{sends ? rank : call.root, sends ? call.root : rank, call.tag};
  std::lock_guard lock(mutex_);
  std::deque<Waiting>& waiting = messages_[route];
  std::shared_ptr<Transfer> transfer;
  if (waiting.empty() || waiting.front().party == party) {
    transfer = std::make_shared<Transfer>(members_, route, call, static_cast<int64_t>(tensor.nbytes()));
    waiting.push_back({transfer, party});
  } else {
    transfer = waiting.front().transfer;
    waiting.pop_front();
    if (waiting.empty()) messages_.erase(route);
  }
  const Call& first = transfer->first();
  if (first.type != call.type || first.chunk != call.chunk) {
    refuse(rank, transfer_label(call, rank, members_->name),
           mismatch_text(call, members_->world_ranks[call.root], first, members_->name));
  }
  transfer->attach(party, call, tensor);
  return {transfer, party};
}

void Group::refuse(int rank, const std::string& op, const std::string& why) const {
  int world_rank = members_->world_ranks[rank];
  members_->world_state->fail({world_rank, world_rank, why});
  members_->world_state->raise(op, 0, members_->logs[rank]->lines());
}

}  // namespace braid::comm::local
