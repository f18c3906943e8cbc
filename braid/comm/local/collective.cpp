// The work of each collective is a sequence of units; any thread may process any range of it. For chunked collectives
// the sequence covers one chunk after another:
//
//   kind            units           unit i
//   all_reduce      chunk           element i of every tensor
//   reduce_scatter  n * chunk       element i of every `in`, to rank i / chunk
//   all_gather      n * chunk       element i of every `out`, from rank i / chunk
//   all_to_all      n * n * chunk   from rank i / (n * chunk), to rank i / chunk % n
//   broadcast       chunk           element i of every tensor
//   barrier, split  0
//   share           0
//
// In a group of one, all_reduce and broadcast have nothing to do either.
#include "braid/comm/local/collective.h"

#include <algorithm>
#include <cstring>

#include "braid/base/text.h"

namespace braid::comm::local {
namespace {

// Calls body(chunk, first, count) for each chunk that [begin, end) touches; `first` counts from the chunk's start.
template <class Body>
void for_chunks(int64_t begin, int64_t end, int64_t chunk, const Body& body) {
  while (begin < end) {
    int64_t index = begin / chunk, first = begin % chunk;
    int64_t count = std::min(chunk - first, end - begin);
    body(index, first, count);
    begin += count;
  }
}

}  // namespace

Collective::Collective(std::shared_ptr<const Membership> members, const Call& call)
    : Operation(members->world_state, members->size()),
      members_(std::move(members)),
      call_(call),
      element_bytes_(static_cast<int64_t>(c10::elementSize(call.type))),
      combine_(combine_of(call.type, call.op)),
      tensors_(2 * members_->size()),
      in_(members_->size()),
      out_(members_->size()) {
  int64_t n = members_->size();
  bool chunked = call.kind != CallKind::AllReduce && call.kind != CallKind::Broadcast;
  int64_t units = call.chunk * (call.kind == CallKind::AllToAll ? n * n : chunked ? n : 1);
  if (n == 1 && !chunked) units = 0;
  int64_t touched = call.kind == CallKind::AllToAll ? 2 : call.kind == CallKind::AllReduce ? 2 * n : n + 1;
  if (units > 0) set_work(units, touched * element_bytes_);
}

void Collective::attach(int rank, const at::Tensor& in, const at::Tensor& out) {
  tensors_[2 * rank] = in;
  tensors_[2 * rank + 1] = out;
  out_[rank] = out.defined() ? out.mutable_data_ptr() : nullptr;
  in_[rank] = in.defined() ? in.const_data_ptr() : nullptr;
}

void Collective::finish() {
  for (at::Tensor& tensor : tensors_) tensor.reset();
}

void Collective::run(int64_t begin, int64_t end) {
  switch (call_.kind) {
    case CallKind::AllReduce:
      return combine_all(begin, end);
    case CallKind::ReduceScatter:
      return scatter(begin, end);
    case CallKind::AllGather:
      return gather(begin, end);
    case CallKind::AllToAll:
      return exchange(begin, end);
    case CallKind::Broadcast:
      return spread(begin, end);
    case CallKind::Barrier:
    case CallKind::Split:
    case CallKind::Share:
    case CallKind::Send:
    case CallKind::Receive:
      return;
  }
}

void Collective::combine_all(int64_t begin, int64_t end) const { combine_({in_, begin, out_, begin, end - begin}); }

void Collective::scatter(int64_t begin, int64_t end) const {
  for_chunks(begin, end, call_.chunk, [&](int64_t to, int64_t first, int64_t count) {
    combine_({in_, to * call_.chunk + first, {&out_[to], 1}, first, count});
  });
}

void Collective::gather(int64_t begin, int64_t end) const {
  for_chunks(begin, end, call_.chunk, [&](int64_t from, int64_t first, int64_t count) {
    for (int to = 0; to < members_->size(); ++to) copy(to, from * call_.chunk + first, from, first, count);
  });
}

void Collective::exchange(int64_t begin, int64_t end) const {
  int n = members_->size();
  for_chunks(begin, end, call_.chunk, [&](int64_t pair, int64_t first, int64_t count) {
    int64_t from = pair / n, to = pair % n;
    copy(to, from * call_.chunk + first, from, to * call_.chunk + first, count);
  });
}

void Collective::spread(int64_t begin, int64_t end) const {
  for (int to = 0; to < members_->size(); ++to) copy(to, begin, call_.root, begin, end - begin);
}

void Collective::copy(int to_rank, int64_t to, int from_rank, int64_t from, int64_t count) const {
  auto* target = static_cast<std::byte*>(out_[to_rank]) + to * element_bytes_;
  auto* source = static_cast<const std::byte*>(in_[from_rank]) + from * element_bytes_;
  if (target != source) std::memcpy(target, source, count * element_bytes_);
}

}  // namespace braid::comm::local
