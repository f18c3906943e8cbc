// A Disk of one file: the order of operations, what is left of short transfers, digests and errors, above a queue that
// only transfers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/disk/block_digests.h"
#include "braid/disk/disk.h"
#include "braid/disk/transfer_queue.h"
#include "braid/disk/unnamed_file.h"

namespace braid::disk {

class ScratchFile final : public Disk {
 public:
  struct Settings {
    int depth = 8;
    Checksums checksums = Checksums::Off;
    std::vector<std::string> notes = {};
  };

  ScratchFile(std::unique_ptr<UnnamedFile> file, std::unique_ptr<TransferQueue> queue, Settings settings);
  ~ScratchFile() override { drain(); }
  ScratchFile(const ScratchFile&) = delete;

  Ticket read(int64_t offset, std::span<std::byte> to) override;
  Ticket write(int64_t offset, std::span<const std::byte> from) override;
  void wait(Ticket ticket) override;
  void wait_all() override;
  void drain() noexcept override;
  void check_written() override;
  void map_at(std::byte* address, int64_t offset, int64_t bytes) override;
  void record_mapped(int64_t offset, std::span<const std::byte> bytes) override;
  void set_recording(Recording recording) override;
  std::vector<Moved> recorded() const override { return record_; }
  int64_t bytes_read() const override { return bytes_read_; }
  int64_t bytes_written() const override { return bytes_written_; }
  std::vector<std::string> notes() const override { return settings_.notes; }

 private:
  struct Operation {
    uint64_t id = 0;
    Direction direction = Direction::Read;
    int64_t offset = 0;
    std::span<std::byte> memory;
    size_t done = 0;   // bytes transferred
    double begin = 0;  // as Moved has it
  };

  Ticket start(Operation operation);
  bool conflicts(const Operation& operation) const;
  bool is_under_way(Ticket ticket) const;
  void submit_rest(const Operation& operation);
  void complete_one();
  void advance(Operation& operation, size_t bytes);
  void finish(const Operation& operation, double end);
  void fail(const Operation& operation, const std::string& why);
  void throw_failure();

  std::unique_ptr<UnnamedFile> file_;
  std::unique_ptr<TransferQueue> queue_;
  Settings settings_;
  std::vector<Operation> under_way_;
  BlockDigests digests_;
  std::string failure_;  // of the first operation that failed
  uint64_t last_id_ = 0;
  int64_t bytes_read_ = 0, bytes_written_ = 0;
  Recording recording_ = Recording::Off;
  std::vector<Moved> record_;
};

}  // namespace braid::disk
