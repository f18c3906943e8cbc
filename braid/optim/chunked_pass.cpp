#include "braid/optim/chunked_pass.h"

#include <ATen/ops/empty.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/param/memory_account.h"

namespace braid::optim {

ChunkedPass::ChunkedPass(param::DiskTensors& disk, const std::vector<at::Tensor>& flats)
    : disk_(disk.disk()),
      length_(flats.at(0).numel()),
      element_bytes_(flats[0].element_size()),
      chunk_(std::min(length_, disk.chunk_bytes() / element_bytes_)) {
  for (const at::Tensor& flat : flats) {
    check(flat.numel() == length_ && flat.element_size() == element_bytes_, "tensors of a pass are of one kind");
    offsets_.push_back(disk.offset(flat));
  }
  const param::MemoryScope scope(param::MemoryCategory::Optimizer);
  const int64_t bytes = chunk_ * element_bytes_, all_bytes = kChunksInMemory * std::ssize(flats) * bytes;
  const int64_t alignment = chunk_alignment(all_bytes);
  memory_ = at::empty({all_bytes + alignment}, at::kByte);
  const auto address = reinterpret_cast<int64_t>(memory_.mutable_data_ptr());
  auto* next = reinterpret_cast<std::byte*>((address + alignment - 1) / alignment * alignment);
  if (alignment == kLargePage) ::madvise(next, static_cast<size_t>(all_bytes), MADV_HUGEPAGE);  // advice alone
  for (Slot& slot : slots_) {
    for (size_t i = 0; i < flats.size(); ++i, next += bytes) slot.chunk.memory.push_back(next);
  }
}

ChunkedPass::~ChunkedPass() { disk_.drain(); }

void ChunkedPass::begin(Update update) {
  check(next_ < 0, "one pass at a time");
  update_ = std::move(update);
  next_ = (length_ + chunk_ - 1) / chunk_ - 1;
  begin_reading(next_);
}

void ChunkedPass::advance(int64_t from) {
  while (next_ >= 0 && next_ * chunk_ >= from) update_next();
}

void ChunkedPass::finish() {
  advance(0);
  for (Slot& slot : slots_) wait_for(slot.writes);
  update_ = nullptr;
}

void ChunkedPass::update_next() {
  if (next_ > 0) begin_reading(next_ - 1);
  Slot& slot = slots_[static_cast<size_t>(next_ % kChunksInMemory)];
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
  for (size_t i = 0; i < offsets_.size(); ++i) {
    slot.reads.push_back(disk_.read(offsets_[i] + slot.chunk.begin * element_bytes_, bytes_of(slot, i)));
  }
}

void ChunkedPass::begin_writing(Slot& slot) {
  for (size_t i = 0; i < offsets_.size(); ++i) {
    slot.writes.push_back(disk_.write(offsets_[i] + slot.chunk.begin * element_bytes_, bytes_of(slot, i)));
  }
}

void ChunkedPass::wait_for(std::vector<disk::Ticket>& tickets) {
  for (const disk::Ticket ticket : tickets) disk_.wait(ticket);
  tickets.clear();
}

std::span<std::byte> ChunkedPass::bytes_of(const Slot& slot, size_t tensor) const {
  return {slot.chunk.memory[tensor], static_cast<size_t>((slot.chunk.end - slot.chunk.begin) * element_bytes_)};
}

}  // namespace braid::optim
