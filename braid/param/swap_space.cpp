// Memory goes to the first free place that is large enough; free places that touch become one.
#include "braid/param/swap_space.h"

#include <algorithm>
#include <cstring>
#include <iterator>
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

SwapSpace::SwapSpace(const SwapOptions& options) : options_(options), disk_(disk::open(with_checksums(options.place))) {
  const int64_t bytes = options.place.bytes / disk::kBlockBytes * disk::kBlockBytes;
  if (bytes > 0) free_[0] = bytes;
}

SwapSpace::~SwapSpace() { disk_->drain(); }

std::optional<int64_t> SwapSpace::take(int64_t bytes) {
  const auto place = std::ranges::find_if(free_, [&](const auto& each) { return each.second >= bytes; });
  if (place == free_.end()) return std::nullopt;
  const auto [offset, all] = *place;
  free_.erase(place);
  if (all > bytes) free_[offset + bytes] = all - bytes;
  return offset;
}

void SwapSpace::give_back(int64_t offset, int64_t bytes) {
  auto next = free_.upper_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
    std::prev(next)->second += bytes;
  } else {
    free_[offset] = bytes;
  }
}

std::shared_ptr<Swapped> SwapSpace::out(const c10::Storage& memory, const std::shared_ptr<Swapped>& before) {
  const int64_t bytes = on_blocks(memory.nbytes());
  const std::optional<int64_t> offset = take(bytes);
  if (!offset) return nullptr;
  const at::Tensor copy = empty_on_blocks(bytes, at::kByte);
  const std::span<std::byte> to = bytes_of(copy);
  std::memcpy(to.data(), memory.data(), memory.nbytes());
  std::memset(to.data() + memory.nbytes(), 0, to.size() - memory.nbytes());
  std::shared_ptr<Swapped> swapped(new Swapped(shared_from_this(), *offset, copy, before));
  swapped->writing_ = disk_->write(*offset, to);
  copies_.push_back({swapped->writing_, copy});
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
  space_->give_back(offset_, bytes_);
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
  space_->disk_->wait(std::exchange(writing_, {}));
  space_->disk_->wait(std::exchange(reading_, {}));
  return memory_.storage();
}

}  // namespace braid::param
