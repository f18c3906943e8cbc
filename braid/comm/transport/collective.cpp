// Rounds, shares, and the places of what is sent and received.
#include "braid/comm/transport/collective.h"

#include <algorithm>
#include <cstring>

#include "braid/base/text.h"

namespace braid::comm::transport {
namespace {

int64_t rounds_of(const Call& call, int64_t capacity) {
  return call.kind == CallKind::Barrier ? 1 : std::max<int64_t>(1, (call.chunk + capacity - 1) / capacity);
}

}  // namespace

Collective::Collective(std::shared_ptr<CollectiveQueue> queue, const Call& call, const at::Tensor& in,
                       const at::Tensor& out)
    : queue_(std::move(queue)),
      group_(queue_->group()),
      call_(call),
      combine_(local::combine_of(call.type, call.op)),
      element_bytes_(static_cast<int64_t>(c10::elementSize(call.type))),
      cut_(queue_->cut(call)),
      num_rounds_(rounds_of(call, cut_.capacity)),
      tensors_{in, out} {
  if (out.defined()) out_ = static_cast<std::byte*>(out.mutable_data_ptr());
  if (in.defined()) in_ = static_cast<const std::byte*>(in.const_data_ptr());
}

bool Collective::combines() const {
  return (call_.kind == CallKind::AllReduce && !by_transport()) || call_.kind == CallKind::ReduceScatter;
}

bool Collective::sends_parts() const {
  return by_shares() || call_.kind == CallKind::ReduceScatter || call_.kind == CallKind::AllToAll;
}

Collective::Stretch Collective::stretch(int64_t round) const {
  const int64_t first = round * cut_.capacity;
  return {first, std::clamp<int64_t>(call_.chunk - first, 0, cut_.capacity)};
}

Collective::Share Collective::share(const Stretch& stretch, int member) const {
  const int64_t line = std::max<int64_t>(1, kCacheLine / element_bytes_), n = group_->size();
  const auto bound = [&](int64_t index) {
    return std::min(stretch.count, (stretch.count * index / n + line - 1) / line * line);
  };
  return {bound(member), bound(member + 1)};
}

Collective::Bytes Collective::sent_first(const Stretch& stretch, int member) const {
  const int64_t bytes = stretch.count * element_bytes_;
  switch (call_.kind) {
    case CallKind::AllReduce: {
      if (by_transport()) return {nullptr, 0};
      if (!by_shares()) return {in_at(stretch.first), bytes};
      const auto [begin, end] = share(stretch, member);
      return {in_at(stretch.first + begin), (end - begin) * element_bytes_};
    }
    case CallKind::ReduceScatter:
    case CallKind::AllToAll:
      return {in_at(member * call_.chunk + stretch.first), bytes};
    case CallKind::AllGather:
    case CallKind::Split:
      return {in_at(stretch.first), bytes};
    case CallKind::Broadcast:
      return {in_at(stretch.first), group_->rank == call_.root ? bytes : 0};
    case CallKind::Barrier:
    case CallKind::Share:  // of thread ranks only
    case CallKind::Send:
    case CallKind::Receive:
      break;
  }
  return {nullptr, 0};
}

Collective::Bytes Collective::received_first(const Stretch& stretch, int member) const {
  const int64_t bytes = stretch.count * element_bytes_;
  switch (call_.kind) {
    case CallKind::AllReduce:
    case CallKind::ReduceScatter:
      return {nullptr, sent_first(stretch, group_->rank).count};
    case CallKind::AllToAll:
    case CallKind::AllGather:
    case CallKind::Split:
      return {out_at(member * call_.chunk + stretch.first), bytes};
    case CallKind::Broadcast:
      return {out_at(stretch.first), member == call_.root ? bytes : 0};
    case CallKind::Barrier:
    case CallKind::Share:
    case CallKind::Send:
    case CallKind::Receive:
      break;
  }
  return {nullptr, 0};
}

Collective::Bytes Collective::result(const Stretch& stretch, int member) const {
  const auto [begin, end] = share(stretch, member);
  return {out_at(stretch.first + begin), (end - begin) * element_bytes_};
}

void Collective::combine(const Stretch& stretch, std::span<const void*> inputs, std::byte* copy) const {
  const int rank = group_->rank;
  const Bytes own = sent_first(stretch, rank);
  if (own.count == 0) return;
  inputs[rank] = own.data;
  void* const outputs[] = {by_shares() ? result(stretch, rank).data : out_at(stretch.first), copy};
  combine_({inputs, 0, {outputs, copy ? size_t{2} : size_t{1}}, 0, own.count / element_bytes_});
}

void Collective::copy_own(const Stretch& stretch) const {
  const bool has_own =
      call_.kind == CallKind::AllToAll || call_.kind == CallKind::AllGather || call_.kind == CallKind::Split;
  if (!has_own) return;
  const Bytes from = sent_first(stretch, group_->rank), to = received_first(stretch, group_->rank);
  if (from.count > 0 && from.data != to.data) std::memcpy(to.data, from.data, static_cast<size_t>(from.count));
}

void Collective::complete() {
  for (at::Tensor& tensor : tensors_) tensor.reset();
  finish();
}

std::string Collective::label() const { return label_of(call_, group_->name); }

Stall Collective::stall() const { return queue_->stall(*this); }

}  // namespace braid::comm::transport
