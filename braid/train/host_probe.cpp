// Times copies of 64 KiB to 64 MiB, and writes and reads of a file that go past the page cache.
#include "braid/train/host_probe.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/direct_files.h"
#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/base/text.h"
#include "braid/ckpt/exchange.h"
#include "braid/comm/agree.h"
#include "braid/train/measuring.h"

namespace braid::train {
namespace {

constexpr int64_t kTensorBytes[] = {64 << 10, 512 << 10, 4 << 20, 64 << 20};
constexpr int64_t kBytesAtOnce = 4 << 20;  // copied in each timing; fewer take less time than the clock resolves
constexpr int kCopies = 6;
constexpr size_t kDiskBlockBytes = 4 << 20;
constexpr int64_t kMostBlocks = 32;
constexpr size_t kSmallFileBytes = 4 << 10;
constexpr int kSaves = 3;
constexpr double kDiskBudget = 1;  // seconds, after which no other block is written or read

std::string random_name() {
  std::random_device random;
  return cat(".braid-doctor-", std::hex, random(), random());
}

// A file that is removed with this object. Its random name is unique: hosts may share the folder, and containers may
// share names and process numbers.
class FileForAMoment {
 public:
  explicit FileForAMoment(const std::string& folder) : path_(folder + "/" + random_name()) {}
  ~FileForAMoment() { ::unlink(path_.c_str()); }
  FileForAMoment(const FileForAMoment&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// Returns random words, which no file system can compress.
std::vector<uint64_t> noise() {
  std::vector<uint64_t> words(kDiskBlockBytes / sizeof(uint64_t));
  std::mt19937_64 random(1);
  std::ranges::generate(words, random);
  return words;
}

// Writes blocks and returns their number.
int64_t write_blocks(const std::string& path, DiskSpeed& speed) {
  std::vector<uint64_t> block = noise();
  int64_t blocks = 0;
  const double begin = now_seconds();
  StagedFile file(path);
  for (; blocks < kMostBlocks && (blocks == 0 || now_seconds() - begin < kDiskBudget); ++blocks) {
    block[0] = static_cast<uint64_t>(blocks);  // blocks differ, since some file systems store equal ones once
    file.append(std::as_bytes(std::span(block)));
  }
  file.sync();
  speed.write_bytes_per_second = static_cast<double>(blocks) * kDiskBlockBytes / (now_seconds() - begin);
  file.close();
  return blocks;
}

void read_blocks(const std::string& path, int64_t blocks, DiskSpeed& speed) {
  const CheckedFile file(path);
  const UncachedFile uncached(file);
  const AlignedBytes memory = aligned_bytes(kDiskBlockBytes);
  int64_t done = 0;
  const double begin = now_seconds();
  for (; done < blocks && (done == 0 || now_seconds() - begin < kDiskBudget); ++done) {
    uncached.read(done * static_cast<int64_t>(kDiskBlockBytes), {memory.get(), kDiskBlockBytes});
  }
  speed.read_bytes_per_second = static_cast<double>(done) * kDiskBlockBytes / (now_seconds() - begin);
}

void save_small(const std::string& path) {
  const std::vector<std::byte> nothing(kSmallFileBytes);
  StagedFile file(path);
  file.append(nothing);
  file.sync();
  file.close();
}

// Runs `work` and returns true if it threw no IoError on any rank. Collective.
template <class Work>
bool done_by_all(const Work& work, Communicator& ranks) {
  bool done = true;
  try {
    work();
  } catch (const IoError&) {
    done = false;
  }
  return comm::agree_all(ranks, "work on files", done);
}

}  // namespace

double measured_save(const std::string& folder, Communicator& ranks) {
  double best = std::numeric_limits<double>::infinity();
  for (int save = 0; save < kSaves; ++save) {
    const FileForAMoment staged(folder), complete(folder);
    ranks.barrier().wait_host();
    const double begin = now_seconds();
    if (!done_by_all([&] { save_small(staged.path()); }, ranks)) return 0;
    const auto publish = [&] {
      if (ranks.rank() != 0) return;
      PosixFileSystem files;
      files.rename(staged.path(), complete.path());
      files.sync_directory(folder);
    };
    if (!done_by_all(publish, ranks)) return 0;
    best = std::min(best, now_seconds() - begin);
  }
  return best;
}

CopySpeed measured_copy(int64_t bytes, at::Device device, Communicator& ranks) {
  at::Tensor from, to;
  const auto allocate = [&] {
    from = uncounted_tensor({bytes}, at::kChar, device).fill_(1);
    to = uncounted_tensor({bytes}, at::kChar, device).fill_(0);
  };
  ckpt::all_or_none(allocate, ranks);
  const int64_t at_once = std::max<int64_t>(1, kBytesAtOnce / bytes);
  double best = std::numeric_limits<double>::infinity();
  for (int copy = 0; copy < kCopies; ++copy) {
    ranks.barrier().wait_host();
    const double begin = now_seconds();
    for (int64_t i = 0; i < at_once; ++i) to.copy_(from);
    wait_for(to);
    best = std::min(best, now_seconds() - begin);
  }
  const double rate = 2.0 * static_cast<double>(at_once * bytes) / best;
  return {static_cast<double>(bytes), comm::agree(ranks, "rate of copies", rate, ReduceOp::Sum) / ranks.size()};
}

std::vector<CopySpeed> measured_copies(at::Device device, Communicator& ranks) {
  std::vector<CopySpeed> speeds;
  for (const int64_t bytes : kTensorBytes) {
    if (!has_memory_for(2 * bytes, ranks) && !speeds.empty()) break;
    speeds.push_back(measured_copy(bytes, device, ranks));
  }
  return speeds;
}

DiskSpeed measured_disk(const std::string& folder) {
  DiskSpeed speed;
  try {
    const FileForAMoment file(folder);
    read_blocks(file.path(), write_blocks(file.path(), speed), speed);
  } catch (const IoError& error) {
    speed = {0, 0, error.what()};
  }
  return speed;
}

}  // namespace braid::train
