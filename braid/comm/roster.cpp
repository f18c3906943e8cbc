// A round, and collectives made of rounds.
#include "braid/comm/roster.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/packed.h"
#include "braid/comm/rank_activity.h"

namespace braid::comm {
namespace {

constexpr int kTag = 0;

at::Tensor copy_of(const at::Tensor& tensor) { return tensor.detach().contiguous().clone(); }

// The memory of a message becomes the receiver's.
ChannelMessage with_own_memory(ChannelMessage message) {
  for (at::Tensor& tensor : message.tensors) tensor = copy_of(tensor);
  return message;
}

at::Tensor combined(const at::Tensor& a, const at::Tensor& b, ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return at::add(a, b);
    case ReduceOp::Max:
      return at::maximum(a, b);
    case ReduceOp::Min:
      return at::minimum(a, b);
  }
  return a;
}

at::Tensor combined(const std::vector<at::Tensor>& all, ReduceOp op) {
  at::Tensor result = all.front();
  for (size_t i = 1; i < all.size(); ++i) result = combined(result, all[i], op);
  return result;
}

// A message of a batch.
struct SentBytes {
  int to = 0, tag = 0;
  std::string bytes;
};
template <class Pack>
void members(Pack& pack, SentBytes& sent) {
  pack(sent.to, sent.tag, sent.bytes);
}

std::string bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

at::Tensor tensor_of(const std::string& bytes) {
  const at::Tensor tensor = at::empty({std::ssize(bytes)}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

// Messages of one sender with the same tag match in order.
void take_first(std::vector<SentBytes>& sent, int rank, const P2p& receive) {
  const auto fits = [&](const SentBytes& each) { return each.to == rank && each.tag == receive.tag; };
  const auto found = std::ranges::find_if(sent, fits);
  check(found != sent.end() && found->bytes.size() == receive.tensor.nbytes(), "a receive has its send in the batch");
  std::memcpy(receive.tensor.mutable_data_ptr(), found->bytes.data(), found->bytes.size());
  sent.erase(found);
}

void assign(const at::Tensor& out, const at::Tensor& values) { out.detach().view(-1).copy_(values.view(-1)); }

}  // namespace

Roster::Roster(Communicator& group) : group_(group), members_(static_cast<size_t>(group.size())) {
  std::iota(members_.begin(), members_.end(), 0);
  channel_ = std::move(group.make_channels({group.rank()}, group.size()).front());
}

// After the barrier no member needs a collective of the whole group to reach its first round.
void Roster::begin() {
  group_.barrier().wait_host();
  begun_ = true;
  if (group_.rank() != 0 && group_.activity()) group_.activity()->allow_loss();
}

std::vector<at::Tensor> Roster::round(const at::Tensor& own) {
  check(begun_, "rounds follow begin()");
  ChannelMessage answer = group_.rank() == 0 ? answered(collected(own)) : received(own);
  std::vector<int> present(answer.header.begin(), answer.header.end());
  if (present != members_) {
    members_ = std::move(present);
    throw MembersLost();
  }
  return std::move(answer.tensors);
}

// A member whose channel closes is lost, also if its tensor has come.
std::map<int, at::Tensor> Roster::collected(const at::Tensor& own) {
  std::map<int, at::Tensor> by_rank{{0, copy_of(own)}};
  std::vector<int> awaited(members_.begin() + 1, members_.end());
  while (!awaited.empty()) {
    ChannelEvent event = channel_->recv_any(kTag, Channel::kNoDeadline);
    std::erase(awaited, event.peer);
    if (event.kind == ChannelEvent::Kind::Received) by_rank[event.peer] = std::move(event.message.tensors.front());
    if (event.kind == ChannelEvent::Kind::Closed) by_rank.erase(event.peer);
  }
  return by_rank;
}

ChannelMessage Roster::answered(const std::map<int, at::Tensor>& by_rank) {
  ChannelMessage answer;
  for (const auto& [rank, tensor] : by_rank) {
    answer.header.push_back(rank);
    answer.tensors.push_back(tensor);
  }
  for (const auto& [rank, tensor] : by_rank) {
    if (rank != 0) channel_->send(rank, kTag, with_own_memory(answer));
  }
  return answer;
}

ChannelMessage Roster::received(const at::Tensor& own) {
  channel_->send(0, kTag, with_own_memory({{}, {own}}));
  for (;;) {
    ChannelEvent event = channel_->recv_any(kTag, Channel::kNoDeadline);
    if (event.kind == ChannelEvent::Kind::Received) return std::move(event.message);
    if (event.kind == ChannelEvent::Kind::Closed && event.peer == 0) {
      throw CommError({"a round of " + group_.name(), 0, 0, "has closed its channel"});
    }
  }
}

int RosterGroup::rank() const {
  const std::vector<int>& members = roster_.members();
  return static_cast<int>(std::ranges::find(members, whole_.rank()) - members.begin());
}

Work RosterGroup::all_reduce(const at::Tensor& tensor, ReduceOp op) {
  if (!roster_.begun()) return whole_.all_reduce(tensor, op);
  assign(tensor, combined(roster_.round(tensor), op));
  return {};
}

Work RosterGroup::reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) {
  if (!roster_.begun()) return whole_.reduce_scatter(out, in, op);
  assign(out, combined(roster_.round(in), op).view(-1).narrow(0, rank() * out.numel(), out.numel()));
  return {};
}

Work RosterGroup::all_gather(const at::Tensor& out, const at::Tensor& in) {
  if (!roster_.begun()) return whole_.all_gather(out, in);
  std::vector<at::Tensor> flat;
  for (const at::Tensor& each : roster_.round(in)) flat.push_back(each.view(-1));
  assign(out, at::cat(flat));
  return {};
}

Work RosterGroup::all_to_all(const at::Tensor& out, const at::Tensor& in) {
  if (!roster_.begun()) return whole_.all_to_all(out, in);
  const int64_t chunk = in.numel() / size();
  std::vector<at::Tensor> flat;
  for (const at::Tensor& each : roster_.round(in)) flat.push_back(each.view(-1).narrow(0, rank() * chunk, chunk));
  assign(out, at::cat(flat));
  return {};
}

Work RosterGroup::broadcast(const at::Tensor& tensor, int root) {
  if (!roster_.begun()) return whole_.broadcast(tensor, root);
  const at::Tensor nothing = at::empty({0}, tensor.scalar_type());
  assign(tensor, roster_.round(rank() == root ? tensor : nothing)[static_cast<size_t>(root)]);
  return {};
}

Work RosterGroup::barrier() {
  if (!roster_.begun()) return whole_.barrier();
  roster_.round(at::empty({0}, at::kByte));
  return {};
}

Work RosterGroup::batch(std::span<const P2p> transfers) {
  if (!roster_.begun()) return whole_.batch(transfers);
  std::vector<SentBytes> mine;
  for (const P2p& each : transfers) {
    if (each.kind == P2p::Kind::Send) mine.push_back({each.peer, each.tag, bytes_of(each.tensor)});
  }
  const std::string packed_sends = packed(mine);
  std::vector<std::vector<SentBytes>> sent;  // by sender
  for (const at::Tensor& each : roster_.round(tensor_of(packed_sends))) {
    sent.push_back(unpacked<std::vector<SentBytes>>(bytes_of(each)).value());
  }
  for (const P2p& each : transfers) {
    if (each.kind == P2p::Kind::Recv) take_first(sent[static_cast<size_t>(each.peer)], rank(), each);
  }
  return {};
}

std::unique_ptr<Communicator> RosterGroup::split(int colour, int key, std::string name) {
  check(!roster_.begun(), "groups are made before members may be lost");
  std::unique_ptr<Communicator> part = whole_.split(colour, key, std::move(name));
  if (part->size() < whole_.size() || part->rank() != whole_.rank()) return part;
  return std::make_unique<RosterGroup>(roster_, std::move(part));
}

std::vector<std::unique_ptr<Channel>> RosterGroup::make_channels(const std::vector<int>& numbers, int num_endpoints) {
  check(!roster_.begun(), "channels are made before members may be lost");
  return whole_.make_channels(numbers, num_endpoints);
}

}  // namespace braid::comm
