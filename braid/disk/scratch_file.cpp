// Operations are carried out as transfers, one after another until all bytes are there.
#include "braid/disk/scratch_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/disk/aligned_buffer.h"

namespace braid::disk {
namespace {

constexpr size_t kMostTransferred = size_t{1} << 30;  // the system transfers at most 2 GiB at once

}  // namespace

ScratchFile::ScratchFile(std::unique_ptr<UnnamedFile> file, std::unique_ptr<TransferQueue> queue, Settings settings)
    : file_(std::move(file)), queue_(std::move(queue)), settings_(std::move(settings)) {}

Ticket ScratchFile::read(int64_t offset, std::span<std::byte> to) { return start({0, Direction::Read, offset, to}); }

// The span of an operation is writable for reads; a write only reads from it.
Ticket ScratchFile::write(int64_t offset, std::span<const std::byte> from) {
  return start({0, Direction::Write, offset, {const_cast<std::byte*>(from.data()), from.size()}});
}

Ticket ScratchFile::start(Operation operation) {
  const auto size = std::ssize(operation.memory);
  const auto address = reinterpret_cast<uintptr_t>(operation.memory.data());
  check(operation.offset % kBlockBytes == 0 && size % kBlockBytes == 0 && address % kBlockBytes == 0,
        "offset, size and memory of a disk operation are whole blocks");
  check(operation.offset >= 0 && size <= file_->bytes() - operation.offset, "a disk operation is inside the space");
  operation.id = ++last_id_;
  if (size == 0) return {operation.id};
  while (conflicts(operation) || std::ssize(under_way_) >= settings_.depth) complete_one();
  if (!failure_.empty()) return {operation.id};  // the wait for it throws
  if (operation.direction == Direction::Write && settings_.checksums == Checksums::On) {
    digests_.record(operation.offset, operation.memory);
  }
  operation.begin = now_seconds();
  under_way_.push_back(operation);
  submit_rest(operation);
  return {operation.id};
}

void ScratchFile::map_at(std::byte* address, int64_t offset, int64_t bytes) {
  check(offset >= 0 && bytes <= file_->bytes() - offset, "a mapping is inside the space");
  const void* const mapped = ::mmap(address, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                    file_->descriptor(), offset);
  if (mapped == MAP_FAILED) throw RunError(cat(file_->folder(), ": cannot map scratch space: ", std::strerror(errno)));
}

void ScratchFile::record_mapped(int64_t offset, std::span<const std::byte> bytes) {
  if (settings_.checksums == Checksums::On) digests_.record(offset, bytes);
}

void ScratchFile::set_recording(Recording recording) {
  recording_ = recording;
  if (recording == Recording::On) record_.clear();
}

bool ScratchFile::conflicts(const Operation& operation) const {
  return std::any_of(under_way_.begin(), under_way_.end(), [&](const Operation& other) {
    return (operation.direction == Direction::Write || other.direction == Direction::Write) &&
           other.offset < operation.offset + std::ssize(operation.memory) &&
           operation.offset < other.offset + std::ssize(other.memory);
  });
}

bool ScratchFile::is_under_way(Ticket ticket) const {
  return std::any_of(under_way_.begin(), under_way_.end(), [&](const Operation& o) { return o.id == ticket.id; });
}

void ScratchFile::submit_rest(const Operation& operation) {
  const size_t left = operation.memory.size() - operation.done;
  queue_->submit({operation.id, operation.direction, file_->descriptor(),
                  operation.offset + static_cast<int64_t>(operation.done), operation.memory.data() + operation.done,
                  std::min(left, kMostTransferred)});
}

void ScratchFile::complete_one() {
  const Completion completion = queue_->next();
  const auto found = std::find_if(under_way_.begin(), under_way_.end(),
                                  [&](const Operation& operation) { return operation.id == completion.id; });
  check(found != under_way_.end(), "a completed transfer belongs to an operation");
  if (completion.result == -EINTR || completion.result == -EAGAIN) return submit_rest(*found);
  if (completion.result < 0) {
    fail(*found, std::strerror(static_cast<int>(-completion.result)));
  } else {
    advance(*found, static_cast<size_t>(completion.result));
    if (failure_.empty() && found->done < found->memory.size()) return submit_rest(*found);
    if (failure_.empty()) finish(*found, completion.ended);
  }
  under_way_.erase(found);
}

// Continues at a block: direct I/O can start nowhere else.
void ScratchFile::advance(Operation& operation, size_t bytes) {
  const size_t whole = bytes / kBlockBytes * kBlockBytes;
  operation.done += whole;
  if (whole > 0) return;
  fail(operation, operation.direction == Direction::Read
                      ? cat("the file ends after ", operation.done + bytes, " bytes of them")
                      : cat("only ", operation.done + bytes, " bytes of them were taken"));
}

void ScratchFile::finish(const Operation& operation, double end) {
  const auto bytes = std::ssize(operation.memory);
  (operation.direction == Direction::Read ? bytes_read_ : bytes_written_) += bytes;
  if (recording_ == Recording::On) {
    record_.push_back({operation.direction, operation.offset, bytes, operation.begin, end});
  }
  file_->leave_cache(operation.offset, bytes);
  if (operation.direction == Direction::Write || settings_.checksums == Checksums::Off) return;
  if (const auto block = digests_.first_difference(operation.offset, operation.memory)) {
    fail(operation, cat("the ", kBlockBytes, " bytes at offset ", *block,
                        " are not those that were written: their checksum differs"));
  }
}

void ScratchFile::fail(const Operation& operation, const std::string& why) {
  if (!failure_.empty()) return;
  failure_ =
      cat("scratch file in ", file_->folder(), ": cannot ", operation.direction == Direction::Read ? "read " : "write ",
          operation.memory.size(), " bytes at offset ", operation.offset, ": ", why);
}

void ScratchFile::wait(Ticket ticket) {
  while (failure_.empty() && is_under_way(ticket)) complete_one();
  throw_failure();
}

void ScratchFile::wait_all() {
  drain();
  throw_failure();
}

void ScratchFile::drain() noexcept {
  while (!under_way_.empty()) complete_one();
}

void ScratchFile::check_written() {
  wait_all();
  constexpr int64_t kAtOnce = int64_t{4} << 20;
  AlignedBuffer memory(std::min(kAtOnce, digests_.end()));
  for (int64_t offset = 0; offset < digests_.end(); offset += kAtOnce) {
    wait(read(offset, memory.first(std::min(kAtOnce, digests_.end() - offset))));
  }
}

// Waits for the operations first: the caller may free their memory when it catches the error.
void ScratchFile::throw_failure() {
  if (failure_.empty()) return;
  drain();
  throw RunError(failure_);
}

}  // namespace braid::disk
