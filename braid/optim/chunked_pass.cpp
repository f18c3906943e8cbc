#include "braid/optim/chunked_pass.h"

#include <ATen/ops/empty.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/param/memory_account.h"

namespace braid::optim {
namespace {

int64_t largest_element(const std::vector<PassTensor>& tensors) {
  int64_t largest = 1;
  for (const PassTensor& tensor : tensors) largest = std::max<int64_t>(largest, tensor.flat.element_size());
  return largest;
}

}  // namespace

ChunkedPass::ChunkedPass(param::DiskTensors& disk, std::vector<PassTensor> tensors)
    : tensors_on_(disk),
      disk_(disk.disk()),
      tensors_(std::move(tensors)),
      length_(tensors_.at(0).flat.numel()),
      chunk_(std::min(length_, disk.chunk_bytes() / largest_element(tensors_))) {
  int64_t element_bytes = 0;
  for (const PassTensor& tensor : tensors_) {
    check(tensor.flat.numel() == length_, "tensors of a pass have one length");
    element_bytes += tensor.flat.element_size();
  }
  const param::MemoryScope scope(param::MemoryCategory::Optimizer);
  const int64_t all_bytes = kChunksInMemory * chunk_ * element_bytes;
  const int64_t alignment = chunk_alignment(all_bytes);
  memory_ = at::empty({all_bytes + alignment}, at::kByte);
  const auto address = reinterpret_cast<int64_t>(memory_.mutable_data_ptr());
  auto* next = reinterpret_cast<std::byte*>((address + alignment - 1) / alignment * alignment);
  if (alignment == kLargePage) ::madvise(next, static_cast<size_t>(all_bytes), MADV_HUGEPAGE);  // advice alone
  for (Slot& slot : slots_) {
    for (const PassTensor& tensor : tensors_) {
      slot.chunk.memory.push_back(next);
      next += chunk_ * tensor.flat.element_size();
    }
  }
}

ChunkedPass::~ChunkedPass() { disk_.drain(); }

void ChunkedPass::begin(PassMode mode, Update update) {
  check(next_ < 0, "one pass at a time");
  mode_ = mode;
  update_ = std::move(update);
  final_from_ = length_;
  next_ = (length_ + chunk_ - 1) / chunk_ - 1;
  begin_reading(next_);
}

void ChunkedPass::advance(int64_t from) {
  final_from_ = from;
  while (next_ >= 0 && next_ * chunk_ >= from) update_next();
}

void ChunkedPass::finish() {
  advance(0);
  for (Slot& slot : slots_) wait_for(slot.writes);
  update_ = nullptr;
}

void ChunkedPass::keep() {
  for (const PassTensor& tensor : tensors_) {
    if (tensor.spare.defined()) tensors_on_.swap(tensor.flat, tensor.spare);
  }
}

void ChunkedPass::update_next() {
  if (next_ > 0) begin_reading(next_ - 1);
  Slot& slot = slots_[static_cast<size_t>(next_ % kChunksInMemory)];
  if (slot.lacks_what_is_read) read(slot, Access::Read);
  wait_for(slot.reads);
  update_(slot.chunk);
  begin_writing(slot);
  --next_;
}

void ChunkedPass::begin_reading(int64_t number) {
  Slot& slot = slots_[static_cast<size_t>(number % kChunksInMemory)];
  wait_for(slot.writes);
  slot.chunk.begin = number * chunk_;
  slot.chunk.end = std::min(length_, slot.chunk.begin + chunk_);
  read(slot, Access::Update);
  if (mode_ == PassMode::Again || mode_ == PassMode::Undo) read(slot, Access::Backup);
  slot.lacks_what_is_read = slot.chunk.begin < final_from_;
  if (!slot.lacks_what_is_read) read(slot, Access::Read);
}

void ChunkedPass::read(Slot& slot, Access access) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].access != access) continue;
    slot.reads.push_back(disk_.read(place(slot, tensors_[i].flat), bytes_of(slot, i)));
  }
}

void ChunkedPass::begin_writing(Slot& slot) {
  if (mode_ == PassMode::Undo) return;
  const bool speculates = mode_ == PassMode::Speculative;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto& [flat, access, spare] = tensors_[i];
    if (access == Access::Read || (access == Access::Backup && !speculates)) continue;
    const at::Tensor& to = speculates && access != Access::Backup ? spare : flat;
    slot.writes.push_back(disk_.write(place(slot, to), bytes_of(slot, i)));
  }
}

void ChunkedPass::wait_for(std::vector<disk::Ticket>& tickets) {
  for (const disk::Ticket ticket : tickets) disk_.wait(ticket);
  tickets.clear();
}

int64_t ChunkedPass::place(const Slot& slot, const at::Tensor& flat) const {
  return tensors_on_.offset(flat) + slot.chunk.begin * flat.element_size();
}

std::span<std::byte> ChunkedPass::bytes_of(const Slot& slot, size_t tensor) const {
  const int64_t elements = slot.chunk.end - slot.chunk.begin;
  return {slot.chunk.memory[tensor], static_cast<size_t>(elements * tensors_[tensor].flat.element_size())};
}

}  // namespace braid::optim
