// Cuts operations at the borders of stripes.
#include "braid/disk/striped_files.h"

#include <algorithm>

namespace braid::disk {

int64_t StripedFiles::bytes_of_each(int64_t bytes, size_t disks) {
  const auto round = kStripeBytes * static_cast<int64_t>(disks);
  return (bytes + round - 1) / round * kStripeBytes;
}

template <class Call>
void StripedFiles::for_each_part(int64_t offset, int64_t bytes, const Call& on) const {
  const auto disks = static_cast<int64_t>(disks_.size());
  for (int64_t done = 0; done < bytes;) {
    const int64_t stripe = (offset + done) / kStripeBytes, inside = (offset + done) % kStripeBytes;
    const int64_t length = std::min(kStripeBytes - inside, bytes - done);
    on(*disks_[static_cast<size_t>(stripe % disks)], stripe / disks * kStripeBytes + inside, done, length);
    done += length;
  }
}

template <class Span, class Start>
Ticket StripedFiles::start(int64_t offset, Span memory, const Start& start_on) {
  std::vector<Part>& parts = parts_[++last_id_];
  for_each_part(offset, std::ssize(memory), [&](Disk& disk, int64_t at, int64_t first, int64_t bytes) {
    const Span part = memory.subspan(static_cast<size_t>(first), static_cast<size_t>(bytes));
    parts.emplace_back(&disk, start_on(disk, at, part));
  });
  return {last_id_};
}

void StripedFiles::map_at(std::byte* address, int64_t offset, int64_t bytes) {
  for_each_part(offset, bytes, [&](Disk& disk, int64_t at, int64_t first, int64_t length) {
    disk.map_at(address + first, at, length);
  });
}

void StripedFiles::record_mapped(int64_t offset, std::span<const std::byte> bytes) {
  for_each_part(offset, std::ssize(bytes), [&](Disk& disk, int64_t at, int64_t first, int64_t length) {
    disk.record_mapped(at, bytes.subspan(static_cast<size_t>(first), static_cast<size_t>(length)));
  });
}

Ticket StripedFiles::read(int64_t offset, std::span<std::byte> to) {
  return start(offset, to, [](Disk& disk, int64_t at, std::span<std::byte> part) { return disk.read(at, part); });
}

Ticket StripedFiles::write(int64_t offset, std::span<const std::byte> from) {
  return start(offset, from,
               [](Disk& disk, int64_t at, std::span<const std::byte> part) { return disk.write(at, part); });
}

// If one disk fails, no operation may be under way on the others either, and each later wait throws.
void StripedFiles::wait(Ticket ticket) {
  const auto found = parts_.find(ticket.id);
  const std::vector<Part> parts = found == parts_.end() ? std::vector<Part>() : std::move(found->second);
  parts_.erase(ticket.id);
  try {
    for (const auto& [disk, part] : parts) disk->wait(part);
    for (const auto& disk : disks_) disk->wait({});
  } catch (...) {
    drain();
    throw;
  }
}

void StripedFiles::wait_all() {
  drain();
  parts_.clear();
  for (const auto& disk : disks_) disk->wait_all();
}

void StripedFiles::drain() noexcept {
  for (const auto& disk : disks_) disk->drain();
}

void StripedFiles::check_written() {
  wait_all();
  for (const auto& disk : disks_) disk->check_written();
}

void StripedFiles::set_recording(Recording recording) {
  for (const auto& disk : disks_) disk->set_recording(recording);
}

// No part of an operation crosses a stripe, so its place in the space follows from its first byte.
std::vector<Moved> StripedFiles::recorded() const {
  std::vector<Moved> all;
  for (size_t disk = 0; disk < disks_.size(); ++disk) {
    for (Moved part : disks_[disk]->recorded()) {
      const int64_t stripe = part.offset / kStripeBytes * std::ssize(disks_) + static_cast<int64_t>(disk);
      part.offset = stripe * kStripeBytes + part.offset % kStripeBytes;
      all.push_back(part);
    }
  }
  std::ranges::stable_sort(all, {}, &Moved::end);
  return all;
}

int64_t StripedFiles::bytes_read() const {
  int64_t sum = 0;
  for (const auto& disk : disks_) sum += disk->bytes_read();
  return sum;
}

int64_t StripedFiles::bytes_written() const {
  int64_t sum = 0;
  for (const auto& disk : disks_) sum += disk->bytes_written();
  return sum;
}

std::vector<std::string> StripedFiles::notes() const {
  std::vector<std::string> all;
  for (const auto& disk : disks_) {
    for (const std::string& note : disk->notes()) {
      if (std::find(all.begin(), all.end(), note) == all.end()) all.push_back(note);
    }
  }
  return all;
}

}  // namespace braid::disk
