#include "braid/optim/chunked_pass.h"

#include <ATen/ops/empty.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/disk/aligned_buffer.h"
#include "braid/param/flat_data.h"
#include "braid/param/memory_account.h"

namespace braid::optim {
namespace {

// Returns the elements of a chunk: so many that a chunk of each tensor is whole blocks, unless it is the only one.
int64_t elements_of_chunk(int64_t chunk_bytes, int64_t num_elements, const std::vector<PassTensor>& tensors) {
  int64_t largest = 1, step = 1;  // bytes and slices
  for (const PassTensor& tensor : tensors) {
    largest = std::max(largest, tensor.slice_bytes);
    step = std::max(step, disk::kBlockBytes / std::min(tensor.slice_bytes, disk::kBlockBytes));
  }
  const int64_t slices = std::max(chunk_bytes / largest / step, int64_t{1}) * step;
  return std::min(num_elements, slices * param::kSliceAlign);
}

int64_t bytes_of_elements(int64_t elements, const PassTensor& tensor) {
  return elements / param::kSliceAlign * tensor.slice_bytes;
}

}  // namespace

ChunkedPass::ChunkedPass(param::DiskTensors& disk, int64_t num_elements, std::vector<PassTensor> tensors)
    : disk_(disk),
      tensors_(std::move(tensors)),
      length_(num_elements),
      chunk_(elements_of_chunk(disk.chunk_bytes(), num_elements, tensors_)) {
  check(num_elements % param::kSliceAlign == 0, "a pass is over whole slices");
  int64_t chunk_bytes = 0;
  for (const PassTensor& tensor : tensors_) chunk_bytes += disk::whole_blocks(bytes_of_elements(chunk_, tensor));
  const param::MemoryScope scope(param::MemoryCategory::Optimizer);
  const int64_t all_bytes = kChunksInMemory * chunk_bytes;
  const int64_t alignment = chunk_alignment(all_bytes);
  memory_ = at::empty({all_bytes + alignment}, at::kByte);
  const auto address = reinterpret_cast<int64_t>(memory_.mutable_data_ptr());
  auto* next = reinterpret_cast<std::byte*>((address + alignment - 1) / alignment * alignment);
  if (alignment == kLargePage) ::madvise(next, static_cast<size_t>(all_bytes), MADV_HUGEPAGE);  // advice alone
  for (Slot& slot : slots_) {
    for (const PassTensor& tensor : tensors_) {
      slot.chunk.memory.push_back(next);
      next += disk::whole_blocks(bytes_of_elements(chunk_, tensor));
    }
  }
}

ChunkedPass::~ChunkedPass() {
  disk_.disk().drain();
  for (size_t i = 0; i < tensors_.size(); ++i) disk_of(i).disk().drain();
}

param::DiskTensors& ChunkedPass::disk_of(size_t tensor) const {
  return tensors_[tensor].disk ? *tensors_[tensor].disk : disk_;
}

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
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].spare.defined()) disk_of(i).swap(tensors_[i].flat, tensors_[i].spare);
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
    disk::Disk& from = disk_of(i).disk();
    slot.reads.push_back({&from, from.read(place(slot, i, tensors_[i].flat), bytes_of(slot, i))});
  }
}

void ChunkedPass::begin_writing(Slot& slot) {
  if (mode_ == PassMode::Undo) return;
  const bool speculates = mode_ == PassMode::Speculative;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const PassTensor& tensor = tensors_[i];
    if (tensor.access == Access::Read || (tensor.access == Access::Backup && !speculates)) continue;
    const at::Tensor& place_of = speculates && tensor.access != Access::Backup ? tensor.spare : tensor.flat;
    disk::Disk& to = disk_of(i).disk();
    slot.writes.push_back({&to, to.write(place(slot, i, place_of), bytes_of(slot, i))});
  }
}

void ChunkedPass::wait_for(std::vector<Transfer>& transfers) {
  for (const Transfer& transfer : transfers) transfer.disk->wait(transfer.ticket);
  transfers.clear();
}

int64_t ChunkedPass::place(const Slot& slot, size_t tensor, const at::Tensor& flat) const {
  return disk_of(tensor).offset(flat) + bytes_of_elements(slot.chunk.begin, tensors_[tensor]);
}

// Returns whole blocks. Of the last chunk of small elements, the last block may be half of one.
std::span<std::byte> ChunkedPass::bytes_of(const Slot& slot, size_t tensor) const {
  const int64_t elements = slot.chunk.end - slot.chunk.begin;
  return {slot.chunk.memory[tensor],
          static_cast<size_t>(disk::whole_blocks(bytes_of_elements(elements, tensors_[tensor])))};
}

}  // namespace braid::optim
