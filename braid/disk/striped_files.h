// A Disk over several others, on which its stripes are in turn: stripe i is on disk i mod n.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/disk/disk.h"

namespace braid::disk {

class StripedFiles final : public Disk {
 public:
  static constexpr int64_t kStripeBytes = int64_t{4} << 20;

  // Returns the bytes that each of `disks` has of a space of `bytes`.
  static int64_t bytes_of_each(int64_t bytes, size_t disks);

  explicit StripedFiles(std::vector<std::unique_ptr<Disk>> disks) : disks_(std::move(disks)) {}

  Ticket read(int64_t offset, std::span<std::byte> to) override;
  Ticket write(int64_t offset, std::span<const std::byte> from) override;
  void wait(Ticket ticket) override;
  void wait_all() override;
  void drain() noexcept override;
  void check_written() override;
  void map_at(std::byte* address, int64_t offset, int64_t bytes) override;
  void record_mapped(int64_t offset, std::span<const std::byte> bytes) override;
  void set_recording(Recording recording) override;
  std::vector<Moved> recorded() const override;
  int64_t bytes_read() const override;
  int64_t bytes_written() const override;
  std::vector<std::string> notes() const override;

 private:
  using Part = std::pair<Disk*, Ticket>;

  // Calls on(disk, offset in it, first byte, number of bytes) for each part of [offset, offset + bytes) that is in one
  // stripe.
  template <class Call>
  void for_each_part(int64_t offset, int64_t bytes, const Call& on) const;
  template <class Span, class Start>
  Ticket start(int64_t offset, Span memory, const Start& start_on);

  std::vector<std::unique_ptr<Disk>> disks_;
  std::map<uint64_t, std::vector<Part>> parts_;  // of operations that were not waited for, by ticket
  uint64_t last_id_ = 0;
};

}  // namespace braid::disk
