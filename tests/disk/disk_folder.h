// A folder of a test's own on a disk, and buffers with known bytes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "braid/base/text.h"
#include "braid/disk/aligned_buffer.h"
#include "braid/disk/disk.h"
#include "braid/disk/transfer_queue.h"

namespace braid::disk {

// The folder is beside the test's binary: the system's folder for temporary files may be in memory.
class DiskFolder : public testing::Test {
 protected:
  DiskFolder() : folder_(name()) { std::filesystem::create_directories(folder_); }
  ~DiskFolder() override { std::filesystem::remove_all(folder_); }

  void SetUp() override {
    const auto found = problems({{folder_}, int64_t{64} << 20});
    if (!found.empty()) GTEST_SKIP() << text(found.front());
  }

  bool is_empty() const { return std::filesystem::is_empty(folder_); }

  const std::string folder_;

 private:
  static std::string name() {
    std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(test.begin(), test.end(), '/', '_');
    const auto binary = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
    return cat(binary, "/disk_test_", ::getpid(), "_", test);
  }
};

// Tests that run with io_uring, unless the system refuses it, and with threads.
class EveryEngine : public DiskFolder, public testing::WithParamInterface<Engine> {
 protected:
  void SetUp() override {
    DiskFolder::SetUp();
    std::string why;
    if (GetParam() == Engine::IoUring && !make_uring_queue(1, why)) GTEST_SKIP() << why;
  }

  Options options(int64_t bytes) const { return {{folder_}, bytes, 8, Checksums::On, GetParam()}; }
};

inline std::string engine_name(const testing::TestParamInfo<Engine>& info) {
  return info.param == Engine::IoUring ? "IoUring" : "Threads";
}

inline void fill(std::span<std::byte> bytes, int seed) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((i * 7 + i / 4096 + static_cast<size_t>(seed)) % 251);
  }
}

inline AlignedBuffer filled(int64_t bytes, int seed) {
  AlignedBuffer buffer(bytes);
  fill(buffer.bytes(), seed);
  return buffer;
}

inline bool are_equal(AlignedBuffer& a, AlignedBuffer& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace braid::disk
