// Bandwidth of a Disk, half of it reads and half of it writes of chunks in random order.
//
//   bench_disk FOLDER io_uring|threads MIB_OF_CHUNK DEPTH CHECKSUMS(on|off) MIB
//   bench_disk checksums
//
// Prints MB/s (10^6 bytes). The space has MIB; it is written once, then each chunk is read or written once, with DEPTH
// under way.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/digest.h"
#include "braid/base/median.h"
#include "braid/disk/aligned_buffer.h"
#include "braid/disk/disk.h"

namespace {

using namespace braid;
using namespace braid::disk;

struct Slot {
  std::span<std::byte> buffer;
  Ticket ticket;
};

// Returns seconds.
double pass(Disk& disk, std::vector<Slot>& slots, const std::vector<int64_t>& chunks) {
  const double begin = now_seconds();
  for (size_t i = 0; i < chunks.size(); ++i) {
    Slot& slot = slots[i % slots.size()];
    disk.wait(slot.ticket);
    const int64_t offset = chunks[i] * std::ssize(slot.buffer);
    slot.ticket = i % 2 == 0 ? disk.read(offset, slot.buffer) : disk.write(offset, slot.buffer);
  }
  disk.wait_all();
  return now_seconds() - begin;
}

void print_bandwidth(char** words) {
  const int64_t chunk = std::atoll(words[3]) << 20, bytes = std::atoll(words[6]) << 20;
  const int depth = std::atoi(words[4]);
  const auto disk = open({{words[1]},
                          bytes,
                          depth,
                          std::string(words[5]) == "on" ? Checksums::On : Checksums::Off,
                          std::string(words[2]) == "threads" ? Engine::Threads : Engine::IoUring});
  for (const std::string& note : disk->notes()) std::fprintf(stderr, "%s\n", note.c_str());
  AlignedBuffer buffer(depth * chunk);
  std::mt19937_64 random(1);
  std::generate(buffer.bytes().begin(), buffer.bytes().end(), [&] { return static_cast<std::byte>(random()); });
  std::vector<Slot> slots;
  for (int i = 0; i < depth; ++i) {
    slots.push_back({buffer.bytes().subspan(static_cast<size_t>(i * chunk), static_cast<size_t>(chunk)), {}});
  }
  std::vector<int64_t> chunks(static_cast<size_t>(bytes / chunk));
  for (size_t i = 0; i < chunks.size(); ++i) chunks[i] = static_cast<int64_t>(i);
  for (const int64_t i : chunks) disk->write(i * chunk, slots[0].buffer);
  disk->wait_all();
  std::shuffle(chunks.begin(), chunks.end(), random);
  const double seconds = pass(*disk, slots, chunks);
  std::printf("%.1f\n", static_cast<double>(std::ssize(chunks) * chunk) / seconds / 1e6);
}

// One core; each chunk was touched by no processor for a while, as after a transfer.
void print_checksums() {
  constexpr size_t kChunk = 4 << 20, kChunks = 64;
  std::vector<std::byte> bytes(kChunk * kChunks, std::byte{1});
  std::vector<double> rates;
  uint64_t sum = 0;
  for (int round = 0; round < 15; ++round) {
    const double begin = now_seconds();
    for (size_t i = 0; i < kChunks; ++i) {
      sum += digest_of(DigestKind::Xxh3, std::span<const std::byte>(bytes).subspan(i * kChunk, kChunk));
    }
    rates.push_back(static_cast<double>(bytes.size()) / (now_seconds() - begin) / 1e9);
  }
  std::printf("%.1f GB/s, the median of 15 rounds (%llx)\n", median(rates), static_cast<unsigned long long>(sum));
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::string(words[1]) == "checksums") {
    print_checksums();
    return 0;
  }
  if (count != 7) {
    std::fprintf(stderr, "bench_disk FOLDER io_uring|threads MIB DEPTH on|off MIB | bench_disk checksums\n");
    return 2;
  }
  print_bandwidth(words);
  return 0;
}
