#include "braid/param/disk_tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/set.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "braid/base/errors.h"
#include "braid/disk/aligned_buffer.h"
#include "braid/param/block_memory.h"

namespace braid::param {
namespace {

// Chunks are whole slices of float64, so that slices of every type lie on blocks of the disk.
constexpr int64_t kChunkAlign = 2 * disk::kBlockBytes;

disk::Options sized(disk::Options place, int64_t bytes) {
  place.bytes = bytes;
  return place;
}

// The deleter of tensors on disk, by which they are known. They keep their DiskTensors alive.
void let_go(void* owner) { delete static_cast<std::shared_ptr<DiskTensors>*>(owner); }

// Returns the address of the tensor's first element, also of a tensor without elements, whose data_ptr() is null.
const std::byte* first_byte(const at::Tensor& flat) {
  return static_cast<const std::byte*>(flat.storage().data()) + flat.storage_offset() * flat.element_size();
}

}  // namespace

DiskTensors::DiskTensors(const DiskSpace& space, int64_t bytes)
    : chunk_bytes_(std::max(space.chunk_bytes / kChunkAlign, int64_t{1}) * kChunkAlign),
      copies_(space.copies),
      disk_(disk::open(sized(space.place, bytes))),
      mapped_(*disk_, bytes) {}

at::Tensor DiskTensors::zeros(int64_t length, at::ScalarType type, MemoryCategory category) {
  const int64_t begin = used_;
  const at::Tensor flat = empty(length, type, category);
  const auto bytes = static_cast<size_t>(used_ - begin);
  if (checks_) disk_->record_mapped(begin, mapped_.bytes().subspan(static_cast<size_t>(begin), bytes));
  return flat;
}

at::Tensor DiskTensors::empty(int64_t length, at::ScalarType type, MemoryCategory category) {
  const int64_t bytes = disk::whole_blocks(length * static_cast<int64_t>(c10::elementSize(type)));
  check(used_ + bytes <= std::ssize(mapped_.bytes()), "a tensor fits in the disk's space");
  std::byte* const memory = mapped_.bytes().data() + used_;
  places_[used_] = used_;
  categories_[used_] = category;
  used_ += bytes;
  at::DataPtr owned(memory, new std::shared_ptr<DiskTensors>(shared_from_this()), &let_go, at::kCPU);
  const c10::Storage storage(c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes), std::move(owned));
  return at::empty({0}, at::TensorOptions(type)).set_(storage, 0, {length});
}

bool DiskTensors::any_has(const at::Tensor& tensor) { return tensor.storage().data_ptr().get_deleter() == &let_go; }

void DiskTensors::begin_checks() {
  if (std::exchange(checks_, true)) return;
  disk_->record_mapped(0, mapped_.bytes().first(static_cast<size_t>(used_)));
}

void DiskTensors::take_written(const at::Tensor& flat) {
  const auto bytes = static_cast<size_t>(disk::whole_blocks(static_cast<int64_t>(flat.nbytes())));
  disk_->record_mapped(offset(flat), mapped_.bytes().subspan(static_cast<size_t>(address(flat)), bytes));
}

bool DiskTensors::has(const at::Tensor& flat) const {
  const std::byte *const memory = first_byte(flat), *const begin = mapped_.bytes().data();
  const std::byte* const end = begin + mapped_.bytes().size();
  return memory >= begin && (memory < end || (memory == end && flat.numel() == 0 && any_has(flat)));
}

int64_t DiskTensors::address(const at::Tensor& flat) const { return first_byte(flat) - mapped_.bytes().data(); }

int64_t DiskTensors::offset(const at::Tensor& flat) const {
  const int64_t at = address(flat);
  const auto& [first, place] = *std::prev(places_.upper_bound(at));
  return place + at - first;
}

MemoryCategory DiskTensors::category_at(int64_t offset) const {
  return std::prev(categories_.upper_bound(offset))->second;
}

void DiskTensors::swap(const at::Tensor& a, const at::Tensor& b) {
  check(a.nbytes() == b.nbytes(), "tensors that exchange their places have one size");
  std::swap(places_.at(address(a)), places_.at(address(b)));
  for (const at::Tensor& flat : {a, b}) {
    const int64_t at = address(flat), bytes = disk::whole_blocks(static_cast<int64_t>(flat.nbytes()));
    disk_->map_at(mapped_.bytes().data() + at, places_.at(at), bytes);
  }
}

disk::Ticket DiskTensors::read(const at::Tensor& flat, const at::Tensor& memory) {
  check(flat.nbytes() == memory.nbytes(), "a read fills its memory");
  return disk_->read(offset(flat), bytes_of(memory));
}

disk::Ticket DiskTensors::write(const at::Tensor& flat, const at::Tensor& memory) {
  check(flat.nbytes() == memory.nbytes(), "a write takes all of its memory");
  return disk_->write(offset(flat), bytes_of(memory));
}

at::Tensor DiskTensors::loaded(const at::Tensor& flat) {
  const MemoryScope scope(MemoryCategory::Communication);
  at::Tensor memory = empty_on_blocks(flat.numel(), flat.scalar_type());
  disk_->wait(read(flat, memory));
  return memory;
}

void DiskTensors::add_to(const at::Tensor& memory, const at::Tensor& flat) {
  const MemoryScope scope(MemoryCategory::Communication);
  const int64_t length = flat.numel(), chunk = std::min(length, chunk_bytes_ / flat.element_size());
  if (length == 0) return;
  const std::array<at::Tensor, 2> chunks{empty_on_blocks(chunk, flat.scalar_type()),
                                         empty_on_blocks(chunk, flat.scalar_type())};
  const auto part = [&](const at::Tensor& of, int64_t begin) {
    return of.narrow(0, begin, std::min(chunk, length - begin));
  };
  const auto place = [&](int64_t begin) {
    const int64_t size = std::min(chunk, length - begin);
    return chunks[static_cast<size_t>(begin / chunk % 2)].narrow(0, 0, size);
  };
  disk::Ticket next = read(part(flat, 0), place(0));
  for (int64_t begin = 0; begin < length; begin += chunk) {
    disk_->wait(next);
    if (begin + chunk < length) next = read(part(flat, begin + chunk), place(begin + chunk));
    part(memory, begin).add_(place(begin));
  }
}

void DiskTensors::change(const at::Tensor& flat, const std::function<void(const at::Tensor&)>& change) {
  const at::Tensor memory = loaded(flat);
  change(memory);
  disk_->wait(write(flat, memory));
}

}  // namespace braid::param
