// A save that fails or is killed at any call to the file system: the old checkpoint still loads, the next save works.
#include <ATen/ops/full.h>
#include <sys/mount.h>

#include <atomic>
#include <map>
#include <mutex>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/checkpoint_writer.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/save.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/ckpt/faulty_file_system.h"
#include "tests/ckpt/sample_tensors.h"
#include "tests/support/scratch_folder.h"

namespace braid::ckpt::save_fault_test {
namespace {

class SaveFault : public ScratchFolder {
 protected:
  // Steps 1, 2, ... have different values.
  static std::vector<PlacedTensor> few(const mesh::DeviceMesh& mesh, int rank, int64_t step) {
    auto tensors = sample_tensors(mesh, rank, static_cast<uint64_t>(step)).wanted;
    std::erase_if(tensors, [](const PlacedTensor& tensor) { return tensor.name.find("blocks.") != std::string::npos; });
    return tensors;
  }
  static std::map<std::string, std::string> tokenizer(int64_t step) {
    return {{"merges.txt", cat("merges of ", step)}, {"vocab.json", cat("vocabulary of ", step)}};
  }
  void save(int64_t step, FileSystem& files, int ranks) {
    const auto tokenizer_files = tokenizer(step);
    const mesh::DeviceMesh mesh(MeshSpec{.tensor = ranks});
    run_ranks(ranks, [&](Communicator& world) {
      save_checkpoint_to(path("last"), {few(mesh, world.rank(), step), {step, "", "tok", 0}, &tokenizer_files}, world,
                         files);
    });
  }
  void save(int64_t step) {
    PosixFileSystem files;
    save(step, files, 1);
  }
  // The step of the checkpoint, whose every tensor must be that step's.
  int64_t loaded_step() {
    verify_checkpoint(path("last"));
    const int64_t step = read_checkpoint_info(path("last")).step;
    const auto tensors = few(mesh::DeviceMesh({}), 0, 99);
    load_checkpoint(path("last"), tensors);
    const auto wanted = few(mesh::DeviceMesh({}), 0, step);
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(equal_bits(tensors[i].local, wanted[i].local)) << wanted[i].name;
    const std::string folder = tokenizer_folder(path("last"));
    for (const auto& [name, bytes] : tokenizer(step)) EXPECT_EQ(content(folder + "/" + name), bytes);
    return step;
  }
  void expect_clean() {
    EXPECT_TRUE(leftovers(path("last")).empty());
    EXPECT_FALSE(std::filesystem::exists(path("last.old")));
  }
};

TEST_F(SaveFault, KilledAtAnyCallTheOldOrTheNewLoadsAndTheNextSaveWorks) {
  for (const int ranks : {1, 3}) {
    int kills = 0;
    for (int when = 0;; ++when) {
      std::filesystem::remove_all(path("last"));
      save(1);
      FaultyFileSystem files(Fault::Kill, when);
      try {
        save(2, files, ranks);
        EXPECT_EQ(loaded_step(), 2);
        break;
      } catch (const Killed&) {
        ++kills;
      }
      const int64_t step = loaded_step();
      EXPECT_TRUE(step == 1 || step == 2) << when;
      save(3);
      EXPECT_EQ(loaded_step(), 3) << when;
      expect_clean();
    }
    EXPECT_GT(kills, 15);
  }
}

// A save that was killed has left its folder under a name of its own.
TEST_F(SaveFault, WhatKilledSavesLeftIsListedAndGoesWithTheNext) {
  for (const int when : {3, 4}) {
    FaultyFileSystem files(Fault::Kill, when);
    EXPECT_THROW(save(2, files, 1), Killed);
    EXPECT_EQ(leftovers(path("last/")).size(), 1u) << "the next removes it";
  }
  const std::string former = path("last.tmp"), others = path("last.tmpx");
  for (const std::string& folder : {former, others}) std::filesystem::create_directory(folder);
  EXPECT_EQ(leftovers(path("last")).size(), 2u);
  save(3);
  expect_clean();
  EXPECT_TRUE(std::filesystem::exists(others));
}

TEST_F(SaveFault, KilledTwiceInARow) {
  FaultyFileSystem counter(Fault::Error, -1);
  save(1, counter, 1);
  for (int first = 0; first < counter.calls() + 4; first += 2) {
    for (int second = 0; second < counter.calls() + 4; second += 5) {
      std::filesystem::remove_all(path("last"));
      save(1);
      for (const int when : {first, second}) {
        FaultyFileSystem files(Fault::Kill, when);
        try {
          save(2, files, 1);
        } catch (const Killed&) {
        }
        loaded_step();
      }
    }
  }
}

TEST_F(SaveFault, WithoutAnOldCheckpointAKilledSaveIsNotOne) {
  for (int when = 1; when < 12; ++when) {
    FaultyFileSystem files(Fault::Kill, when);
    EXPECT_THROW(save(2, files, 1), Killed);
    EXPECT_THROW(read_checkpoint_info(path("last")), IoError);
  }
  save(3);
  EXPECT_EQ(loaded_step(), 3);
  expect_clean();
}

TEST_F(SaveFault, AFailureAtAnyCallIsEveryRanksAndLeavesTheOldCheckpoint) {
  int failures = 0;
  for (int when = 0;; ++when) {
    std::filesystem::remove_all(path("last"));
    save(1);
    FaultyFileSystem files(Fault::Error, when);
    std::mutex lock;
    std::vector<std::string> errors;
    const mesh::DeviceMesh mesh({.tensor = 3});
    const auto tokenizer_files = tokenizer(2);
    run_ranks(3, [&](Communicator& world) {
      try {
        save_checkpoint_to(path("last"), {few(mesh, world.rank(), 2), {2, "", "tok", 0}, &tokenizer_files}, world,
                           files);
      } catch (const IoError& error) {
        const std::scoped_lock hold(lock);
        errors.push_back(error.what());
      }
    });
    if (!files.struck()) break;
    ++failures;
    if (errors.empty()) {  // the new checkpoint was published before the call that failed
      EXPECT_EQ(loaded_step(), 2);
    } else {
      ASSERT_EQ(errors.size(), 3u) << when;
      EXPECT_EQ(errors[0], errors[1]);
      EXPECT_EQ(errors[0], errors[2]);
      EXPECT_EQ(errors[0].find(path("last").substr(0, folder_.size())), 0u) << errors[0];
      EXPECT_NE(errors[0].find(": cannot write: injected"), std::string::npos) << errors[0];
      EXPECT_EQ(loaded_step(), 1) << when;
      expect_clean();
    }
    save(3);
    EXPECT_EQ(loaded_step(), 3);
    expect_clean();
  }
  EXPECT_GT(failures, 15);
}

TEST_F(SaveFault, APlaceThatCannotBeWrittenIsNamedOnEveryRank) {
  write(path("file"), "not a folder");
  std::atomic<int> named = 0;
  run_ranks(2, [&](Communicator& world) {
    try {
      save_checkpoint(path("file/step"), {few(mesh::DeviceMesh({.tensor = 2}), world.rank(), 1), {}}, world);
    } catch (const IoError& error) {
      named += std::string(error.what()).find(path("file")) == 0 &&
               std::string(error.what()).find("Not a directory") != std::string::npos;
    }
  });
  EXPECT_EQ(named, 2);
}

TEST_F(SaveFault, AFolderThatIsNoCheckpointIsNotReplaced) {
  std::filesystem::create_directory(path("last"));
  save(1);  // an empty folder is
  EXPECT_EQ(loaded_step(), 1);
  std::filesystem::remove_all(path("last"));
  std::filesystem::create_directory(path("last"));
  write(path("last/notes.txt"), "mine");
  EXPECT_THROW(save(2), IoError);
  EXPECT_EQ(content(path("last/notes.txt")), "mine");
  expect_clean();
  std::filesystem::remove_all(path("last"));
  write(path("last"), "a file of mine");
  EXPECT_THROW(save(3), IoError);
  EXPECT_EQ(content(path("last")), "a file of mine");
}

TEST_F(SaveFault, AFolderThatIsGoneIsNotMadeAgain) {
  std::atomic<int> named = 0;
  run_ranks(2, [&](Communicator& world) {
    try {
      save_checkpoint(path("gone/step"), {few(mesh::DeviceMesh({.tensor = 2}), world.rank(), 1), {}}, world);
    } catch (const IoError& error) {
      named += error.what() == cat(path("gone"), ": is gone: there is no folder to save ", path("gone/step"), " in");
    }
  });
  EXPECT_EQ(named, 2);
  EXPECT_FALSE(std::filesystem::exists(path("gone")));
}

// The system's, but that it has room for everything.
class RoomyFileSystem final : public FileSystem {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path) override { return real_.create(path); }
  void create_directories(const std::string& path) override { real_.create_directories(path); }
  void sync_directory(const std::string& path) override { real_.sync_directory(path); }
  void rename(const std::string& from, const std::string& to) override { real_.rename(from, to); }
  void replace(const std::string& from, const std::string& to) override { real_.replace(from, to); }
  void remove_all(const std::string& path) override { real_.remove_all(path); }
  bool exists(const std::string& path) override { return real_.exists(path); }
  int64_t free_bytes(const std::string&) override { return int64_t{1} << 60; }

 private:
  PosixFileSystem real_;
};

TEST_F(SaveFault, AFullDiskIsSaidBeforeAnythingIsWrittenOrWithWhatIsFree) {
  std::filesystem::create_directory(path("disk"));
  if (::mount("none", path("disk").c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "mounting needs privileges";
  const mesh::DeviceMesh mesh(MeshSpec{.data = 2});
  const auto error_on = [&](FileSystem& files) {
    std::vector<std::string> errors(2);
    run_ranks(2, [&](Communicator& world) {
      try {
        save_checkpoint_to(path("disk/step"), {sample_tensors(mesh, world.rank()).wanted, {}}, world, files);
      } catch (const IoError& error) {
        errors[static_cast<size_t>(world.rank())] = error.what();
      }
    });
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_TRUE(std::filesystem::is_empty(path("disk")));
    return errors[0];
  };
  PosixFileSystem real;
  RoomyFileSystem roomy;
  const std::string before = error_on(real), within = error_on(roomy);
  EXPECT_EQ(before.find(path("disk") + ": has 65536 bytes free; " + path("disk/step") + " needs "), 0u) << before;
  EXPECT_EQ(within.find(path("disk/step.tmp.")), 0u) << within;
  EXPECT_NE(within.find(".safetensors: cannot write: No space left on device ("), within.npos) << within;
  EXPECT_NE(within.find(" free)"), within.npos) << within;
  EXPECT_EQ(::umount(path("disk").c_str()), 0);
}

TEST_F(SaveFault, LinksAreNotWrittenThrough) {
  write(path("precious"), "content");
  std::filesystem::create_symlink(path("precious"), path("link"));
  EXPECT_THROW(PosixFileSystem().create(path("link")), IoError);
  EXPECT_EQ(content(path("precious")), "content");
}

}  // namespace
}  // namespace braid::ckpt::save_fault_test
