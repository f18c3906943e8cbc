// Which checkpoints stay, and that a removal is all or nothing and waits for readers.
#include "braid/ckpt/retention.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/ckpt/sample_tensors.h"
#include "tests/support/nfs_locks.h"
#include "tests/support/scratch_folder.h"

namespace braid::ckpt::retention_test {
namespace {

class RetentionTest : public ScratchFolder {
 protected:
  void save(int64_t step) {
    run_ranks(1, [&](Communicator& world) {
      auto tensors = sample_tensors(mesh::DeviceMesh(MeshSpec()), 0).wanted;
      tensors.resize(2);
      save_checkpoint(checkpoint_folder(folder_, step), {tensors, {}}, world);
    });
  }
  std::string manifest(int64_t step) const { return checkpoint_folder(folder_, step) + "/manifest.json"; }
  std::vector<int64_t> gone(const Retention& retention, const std::map<int64_t, double>& losses = {}) const {
    std::vector<int64_t> steps;
    for (const SavedCheckpoint& saved : superseded(folder_, retention, losses)) steps.push_back(saved.step);
    return steps;
  }
};

using Steps = std::vector<int64_t>;

TEST_F(RetentionTest, TheNewestStayAndTheBest) {
  EXPECT_EQ(gone({1, 0}), Steps());
  for (const int64_t step : {1, 2, 3, 4, 5}) save(step);
  EXPECT_EQ(gone({0, 0}), Steps());
  EXPECT_EQ(gone({5, 0}), Steps());
  EXPECT_EQ(gone({2, 0}), (Steps{3, 2, 1}));
  const std::map<int64_t, double> losses{{1, 0.5}, {2, 0.4}, {3, 0.4}, {9, 0.1}};
  EXPECT_EQ(gone({2, 1}, losses), (Steps{2, 1})) << "of equal ones the newer";
  EXPECT_EQ(gone({2, 2}, losses), Steps{1});
  EXPECT_EQ(gone({2, 1}, {{5, 0.1}, {1, 0.2}}), (Steps{3, 2, 1})) << "the best is among the newest";
}

// One that cannot be gone on from makes nobody superfluous.
TEST_F(RetentionTest, TheLastThatIsWholeStays) {
  for (const int64_t step : {1, 2, 3}) save(step);
  std::filesystem::resize_file(checkpoint_folder(folder_, 3) + "/model.safetensors", 10);
  EXPECT_EQ(gone({1, 0}), Steps{1});
  write(manifest(2), "{");
  EXPECT_EQ(gone({1, 0}), Steps());
  write(manifest(1), "{");
  EXPECT_EQ(gone({1, 0}), Steps());
}

TEST_F(RetentionTest, WhatIsReadIsNotRemoved) {
  save(1);
  PosixFileSystem files;
  const SavedCheckpoint saved{1, checkpoint_folder(folder_, 1)};
  {
    CheckpointReading one(saved.directory), other(saved.directory);
    EXPECT_FALSE(remove_checkpoint(saved, files));
    one.end();
    EXPECT_FALSE(remove_checkpoint(saved, files));
  }
  verify_checkpoint(saved.directory);
  EXPECT_TRUE(remove_checkpoint(saved, files));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  CheckpointReading nothing(saved.directory);  // reading it says what is wrong
}

// NFS grants an exclusive lock only on a descriptor that is open for writing.
TEST_F(RetentionTest, WhatIsReadOverNfsIsNotRemoved) {
  save(1);
  PosixFileSystem files;
  const SavedCheckpoint saved{1, checkpoint_folder(folder_, 1)};
  const NfsLocks nfs;
  {
    const CheckpointReading reading(saved.directory);
    EXPECT_FALSE(remove_checkpoint(saved, files));
  }
  verify_checkpoint(saved.directory);
  EXPECT_TRUE(remove_checkpoint(saved, files));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

template <class Call>
std::string io_error_of(const Call& call) {
  try {
    call();
  } catch (const IoError& error) {
    return error.what();
  }
  return "";
}

// An answer that is neither yes nor no holds nothing and removes nothing.
TEST_F(RetentionTest, AFailedLockIsAnErrorThatNamesTheFile) {
  save(1);
  PosixFileSystem files;
  const SavedCheckpoint saved{1, checkpoint_folder(folder_, 1)};
  const std::string error = cat(manifest(1), ": cannot lock: Input/output error");
  {
    const NfsLocks broken(EIO);
    EXPECT_EQ(io_error_of([&] { remove_checkpoint(saved, files); }), error);
    EXPECT_EQ(io_error_of([&] { const CheckpointReading reading(saved.directory); }), error);
  }
  verify_checkpoint(saved.directory);
}

TEST_F(RetentionTest, WithoutLocksBothGoOn) {
  save(1);
  PosixFileSystem files;
  const SavedCheckpoint saved{1, checkpoint_folder(folder_, 1)};
  const NfsLocks none(ENOLCK);
  const CheckpointReading reading(saved.directory);
  EXPECT_TRUE(remove_checkpoint(saved, files));
}

struct Killed {};

// Ends at its call number `when`.
class EndingFileSystem final : public FileSystem {
 public:
  explicit EndingFileSystem(int when) : when_(when) {}
  std::unique_ptr<WritableFile> create(const std::string& path) override { return real_.create(path); }
  void create_directories(const std::string& path) override { real_.create_directories(path); }
  void sync_directory(const std::string& path) override { call(), real_.sync_directory(path); }
  void rename(const std::string& from, const std::string& to) override { call(), real_.rename(from, to); }
  void replace(const std::string& from, const std::string& to) override { real_.replace(from, to); }
  void remove_all(const std::string& path) override {
    if (calls_ == when_) std::filesystem::remove(path + "/model.safetensors");  // ends half-way
    call();
    real_.remove_all(path);
  }
  bool exists(const std::string& path) override { return real_.exists(path); }

 private:
  void call() {
    if (calls_++ == when_) throw Killed();
  }
  PosixFileSystem real_;
  const int when_;
  int calls_ = 0;
};

TEST_F(RetentionTest, KilledAtAnyCallItIsWholeOrNotThere) {
  const SavedCheckpoint saved{1, checkpoint_folder(folder_, 1)};
  bool removed = false;
  int num_kills = 0;
  for (int when = 0; !removed; ++when) {
    save(1);
    EndingFileSystem files(when);
    try {
      removed = remove_checkpoint(saved, files);
    } catch (const Killed&) {
      ++num_kills;
    }
    const bool there = !saved_checkpoints(folder_).empty();
    if (there) verify_checkpoint(saved.directory);
    const auto left = half_removed_checkpoints(folder_);
    EXPECT_EQ(left.size(), there || removed ? 0u : 1u) << when;
    PosixFileSystem real;
    for (const std::string& path : left) real.remove_all(path);
  }
  EXPECT_EQ(num_kills, 5);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace braid::ckpt::retention_test
