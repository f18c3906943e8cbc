// Steps repeat the sizes of their tensors, so a free place is used again by memory of its size alone.
#include "braid/param/swap_space.h"

#include <cstring>
#include <utility>

#include "braid/base/errors.h"
#include "braid/param/block_memory.h"

namespace braid::param {
namespace {

constexpr int kTransfers = 64;  // under way at once: more than a block of a model has tensors

disk::Options with_checksums(disk::Options place) {
  place.depth = kTransfers;
  place.checksums = disk::Checksums::On;
  return place;
}

int64_t on_blocks(size_t bytes) {
  const auto all = static_cast<int64_t>(bytes);
  return (all + disk::kBlockBytes - 1) / disk::kBlockBytes * disk::kBlockBytes;
}

}  // namespace

SwapSpace::SwapSpace(const SwapOptions& options)
    : options_(options), disk_(disk::open(with_checksums(options.place))) {}

SwapSpace::~SwapSpace() { disk_->drain(); }

std::shared_ptr<Swapped> SwapSpace::out(const c10::Storage& memory, const std::shared_ptr<Swapped>& before) {
  const int64_t bytes = on_blocks(memory.nbytes());
  std::vector<int64_t>& free = free_[bytes];
  if (free.empty() && used_ + bytes > options_.place.bytes) return nullptr;
  const at::Tensor copy = empty_on_blocks(bytes, at::kByte);
  const std::span<std::byte> to = bytes_of(copy);
  std::memcpy(to.data(), memory.data(), memory.nbytes());
  std::memset(to.data() + memory.nbytes(), 0, to.size() - memory.nbytes());
  int64_t offset = used_;
  if (free.empty()) {
    used_ += bytes;
  } else {
    offset = free.back();
    free.pop_back();
  }
  std::shared_ptr<Swapped> swapped(new Swapped(shared_from_this(), offset, copy, before));
  copies_.push_back({disk_->write(offset, to), copy});
  bytes_copied_ += bytes;
  bytes_written_ += bytes;
  while (options_.most_copied >= 0 && bytes_copied_ > options_.most_copied) finish_oldest();
  return swapped;
}

void SwapSpace::finish_oldest() {
  disk_->wait(copies_.front().written);
  bytes_copied_ -= static_cast<int64_t>(copies_.front().memory.nbytes());
  copies_.pop_front();
  if (num_of_last_part_ > 0) --num_of_last_part_;
}

void SwapSpace::next_part() {
  while (num_of_last_part_ > 0) finish_oldest();
  num_of_last_part_ = copies_.size();
}

void SwapSpace::finish() {
  while (!copies_.empty()) finish_oldest();
}

Swapped::Swapped(std::shared_ptr<SwapSpace> space, int64_t offset, const at::Tensor& copy,
                 std::weak_ptr<Swapped> before)
    : space_(std::move(space)),
      offset_(offset),
      bytes_(static_cast<int64_t>(copy.nbytes())),
      copy_(copy.getIntrusivePtr()),
      before_(std::move(before)) {}

Swapped::~Swapped() {
  if (reading_.id != 0) space_->disk_->drain();  // the memory belongs to the read
  space_->free_[bytes_].push_back(offset_);
}

void Swapped::start_in() {
  if (memory_.defined()) return;
  if (auto copy = copy_.lock()) {
    memory_ = at::Tensor(std::move(copy));
    return;
  }
  memory_ = empty_on_blocks(bytes_, at::kByte);
  reading_ = space_->disk_->read(offset_, bytes_of(memory_));
  space_->bytes_read_ += bytes_;
}

c10::Storage Swapped::memory() {
  start_in();
  int64_t ahead = space_->options_.ahead;
  for (auto next = before_.lock(); next && ahead > 0; next = next->before_.lock()) {
    next->start_in();
    ahead -= next->bytes_;
  }
  space_->disk_->wait(std::exchange(reading_, {}));
  return memory_.storage();
}

}  // namespace braid::param
