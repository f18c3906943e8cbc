// What lies in the slot of rank r in a round, and who reads it:
//
//   all_reduce, of two   r's stretch                                    everybody, combining all of it
//   ranks or of little
//   all_reduce, else     r's stretch cut into shares; share r itself    share s: rank s, combining;
//                        is written last, with its combination          share r: everybody else
//   reduce_scatter       a stretch of each chunk but its own            chunk s: rank s, combining
//   all_to_all           the same                                       chunk s: rank s
//   all_gather, split    r's stretch                                    everybody else
//   broadcast            the root's stretch                             everybody else
//   barrier              nothing
//
// What r needs of its own it takes from its tensor.
#include "braid/comm/shm/collective.h"

#include <algorithm>
#include <cstring>

#include "braid/base/text.h"

namespace braid::comm::shm {
namespace {

constexpr int64_t kCombinedByAll = 8 << 10;  // combining it on every rank is cheaper than meeting once more
constexpr int64_t kLine = 64;                // bytes; shares begin at cache lines

// Two ranks move as many bytes with shares as without, and meet once more.
bool is_shared(const Call& call, int num_members, int64_t bytes) {
  return call.kind == CallKind::AllReduce && num_members > 2 && bytes > kCombinedByAll;
}

bool has_chunk_for_each(CallKind kind) { return kind == CallKind::ReduceScatter || kind == CallKind::AllToAll; }

}  // namespace

Collective::Collective(std::shared_ptr<const Group> group, int rank, int64_t number, const Call& call)
    : group_(std::move(group)),
      rank_(rank),
      number_(number),
      call_(call),
      element_bytes_(static_cast<int64_t>(c10::elementSize(call.type))),
      shares_(is_shared(call, group_->size(), call.chunk * element_bytes_)),
      combine_(comm::local::combine_of(call.type, call.op)) {
  const int64_t parts = has_chunk_for_each(call.kind) ? group_->size() : 1;
  capacity_ = Slot::kBytes / parts / kLine * kLine / element_bytes_;
  if (call.kind != CallKind::Barrier) rounds_ = std::max<int64_t>(1, (call.chunk + capacity_ - 1) / capacity_);
}

void Collective::attach(const at::Tensor& in, const at::Tensor& out) {
  tensors_[0] = in;
  tensors_[1] = out;
  if (out.defined()) out_ = static_cast<std::byte*>(out.mutable_data_ptr());
  if (in.defined()) in_ = static_cast<const std::byte*>(in.const_data_ptr());
}

void Collective::complete() {
  for (at::Tensor& tensor : tensors_) tensor.reset();
  finish();
}

void Collective::post(int64_t round, Slot& own) const {
  own.call = call_;
  const Stretch part = stretch(round);
  switch (call_.kind) {
    case CallKind::AllReduce:
      return shares_ ? post_shares(part, own) : copy(own.bytes, in_at(part.first), part.count);
    case CallKind::ReduceScatter:
    case CallKind::AllToAll:
      return post_chunks(part, own);
    case CallKind::AllGather:
    case CallKind::Split:
      return copy(own.bytes, in_at(part.first), part.count);
    case CallKind::Broadcast:
      return rank_ == call_.root ? copy(own.bytes, in_at(part.first), part.count) : void();
    case CallKind::Barrier:
    case CallKind::Share:  // of threads alone
      return;
  }
}

void Collective::combine(int64_t round, std::span<Slot* const> slots) const {
  const Stretch part = stretch(round);
  const auto [begin, end] = share(part, rank_);
  if (begin == end) return;
  std::vector<const void*> inputs;
  for (const Slot* slot : slots) inputs.push_back(slot->bytes + begin * element_bytes_);
  inputs[rank_] = in_at(part.first + begin);
  void* const outputs[] = {out_at(part.first + begin), slots[rank_]->bytes + begin * element_bytes_};
  combine_({inputs, 0, outputs, 0, end - begin});
}

void Collective::read(int64_t round, std::span<Slot* const> slots) const {
  const Stretch part = stretch(round);
  switch (call_.kind) {
    case CallKind::AllReduce:
      return shares_ ? read_shares(part, slots) : read_sum(part, slots);
    case CallKind::ReduceScatter:
      return read_sum(part, slots);
    case CallKind::AllGather:
    case CallKind::AllToAll:
    case CallKind::Split:
      return read_chunks(part, slots);
    case CallKind::Broadcast:
      return rank_ != call_.root ? copy(out_at(part.first), slots[call_.root]->bytes, part.count) : void();
    case CallKind::Barrier:
    case CallKind::Share:  // of threads alone
      return;
  }
}

std::string Collective::label() const { return cat(name_of(call_.kind), " #", number_, " on ", group_->name); }

std::vector<int> Collective::missing() const {
  std::vector<int> ranks;
  for (int member = 0; member < group_->size(); ++member) {
    if (!has_arrived(member)) ranks.push_back(group_->world_ranks[member]);
  }
  return ranks;
}

// What a rank has issued is visible before it leaves, so that is read first.
int Collective::lost() const {
  for (int member = 0; member < group_->size(); ++member) {
    const int rank = group_->world_ranks[member];
    if (group_->world.left(rank) && !has_arrived(member)) return rank;
  }
  return -1;
}

bool Collective::has_arrived(int member) const {
  return group_->world.member(group_->id, member).issued.load() > number_;
}

Collective::Stretch Collective::stretch(int64_t round) const {
  const int64_t first = round * capacity_;
  return {first, std::clamp<int64_t>(call_.chunk - first, 0, capacity_)};
}

Collective::Share Collective::share(const Stretch& stretch, int rank) const {
  const int64_t line = std::max<int64_t>(1, kLine / element_bytes_), n = group_->size();
  const auto bound = [&](int64_t index) {
    return std::min(stretch.count, (stretch.count * index / n + line - 1) / line * line);
  };
  return {bound(rank), bound(rank + 1)};
}

void Collective::post_shares(const Stretch& stretch, Slot& own) const {
  const auto [begin, end] = share(stretch, rank_);
  copy(own.bytes, in_at(stretch.first), begin);
  copy(own.bytes + end * element_bytes_, in_at(stretch.first + end), stretch.count - end);
}

void Collective::post_chunks(const Stretch& stretch, Slot& own) const {
  for (int to = 0; to < group_->size(); ++to) {
    if (to == rank_) continue;
    copy(own.bytes + to * capacity_ * element_bytes_, in_at(to * call_.chunk + stretch.first), stretch.count);
  }
}

void Collective::read_shares(const Stretch& stretch, std::span<Slot* const> slots) const {
  for (int from = 0; from < group_->size(); ++from) {
    if (from == rank_) continue;
    const auto [begin, end] = share(stretch, from);
    copy(out_at(stretch.first + begin), slots[from]->bytes + begin * element_bytes_, end - begin);
  }
}

void Collective::read_sum(const Stretch& stretch, std::span<Slot* const> slots) const {
  if (stretch.count == 0) return;
  std::vector<const void*> inputs;
  for (int from = 0; from < group_->size(); ++from) inputs.push_back(given(from, stretch, slots));
  void* const output = out_at(stretch.first);
  combine_({inputs, 0, {&output, 1}, 0, stretch.count});
}

void Collective::read_chunks(const Stretch& stretch, std::span<Slot* const> slots) const {
  for (int from = 0; from < group_->size(); ++from) {
    copy(out_at(from * call_.chunk + stretch.first), given(from, stretch, slots), stretch.count);
  }
}

const std::byte* Collective::given(int rank, const Stretch& stretch, std::span<Slot* const> slots) const {
  const int64_t chunk = has_chunk_for_each(call_.kind) ? rank_ : 0;
  if (rank == rank_) return in_at(chunk * call_.chunk + stretch.first);
  return slots[rank]->bytes + chunk * capacity_ * element_bytes_;
}

void Collective::copy(std::byte* to, const std::byte* from, int64_t count) const {
  if (count > 0 && to != from) std::memcpy(to, from, count * element_bytes_);
}

}  // namespace braid::comm::shm
