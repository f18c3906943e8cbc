// The entries of a run's folder by their names: the chosen checkpoint, and those passed over.
#include "braid/ckpt/saved_checkpoints.h"

#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/manifest.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/ckpt/sample_tensors.h"
#include "tests/support/scratch_folder.h"

namespace braid::ckpt::saved_checkpoints_test {
namespace {

class SavedCheckpoints : public ScratchFolder {
 protected:
  void save(const std::string& name) {
    run_ranks(1, [&](Communicator& world) {
      save_checkpoint(path(name), {sample_tensors(mesh::DeviceMesh(MeshSpec()), 0).wanted, {}}, world);
    });
  }
  std::vector<int64_t> steps() {
    std::vector<int64_t> found;
    for (const auto& saved : saved_checkpoints(folder_)) found.push_back(saved.step);
    return found;
  }
};

TEST_F(SavedCheckpoints, AreListedByNumberAndOthersAreNone) {
  EXPECT_TRUE(saved_checkpoints(path("nowhere")).empty());
  for (const char* name : {"step-9", "step-10", "step-100"}) save(name);
  for (const char* name :
       {"step-07", "step-", "step-x", "step--1", "step-5x", "step-9.tmp", "step-9.tmp.17-0a5bc2f1", "step-9.tmpx",
        "step-9.tmp.old", "step-9.tmp.17-0a5bc2f", "step-11.undone", "step-12.undone-x"}) {
    std::filesystem::create_directory(path(name));
    write(path(std::string(name) + "/manifest.json"), "{}");
  }
  std::filesystem::create_directory(path("step-50"));
  write(path("step-60"), "");
  EXPECT_EQ(steps(), (std::vector<int64_t>{100, 10, 9}));
  std::filesystem::rename(path("step-10"), path(aside_name("step-10")));
  EXPECT_EQ(steps(), (std::vector<int64_t>{100, 10, 9})) << "set aside by a save that was stopped";
  EXPECT_EQ(half_written_checkpoints(folder_),
            (std::vector<std::string>{path("step-9.tmp"), path("step-9.tmp.17-0a5bc2f1")}));
  EXPECT_EQ(undone_checkpoints(folder_), std::vector<std::string>{path("step-11.undone")});
}

TEST_F(SavedCheckpoints, TheNewestWholeOneIsChosen) {
  for (const char* name : {"step-2", "step-10", "step-9"}) save(name);
  EXPECT_EQ(chosen_checkpoint(folder_).directory, path("step-10"));
  EXPECT_EQ(chosen_checkpoint(path("step-9")).directory, path("step-9")) << "a checkpoint is itself";
  EXPECT_EQ(chosen_checkpoint(path("nowhere")).directory, "");
  std::string weights = content(path("step-10/model.safetensors"));
  weights.back() ^= 1;
  write(path("step-10/model.safetensors"), weights);
  std::filesystem::remove(path("step-9/optimizer.safetensors"));
  const CheckpointChoice choice = chosen_checkpoint(folder_);
  EXPECT_EQ(choice.directory, path("step-2"));
  ASSERT_EQ(choice.passed_over.size(), 2u);
  EXPECT_EQ(choice.passed_over[0].find(path("step-10/model.safetensors")), 0u) << choice.passed_over[0];
  EXPECT_EQ(choice.passed_over[1].find(path("step-9/optimizer.safetensors")), 0u) << choice.passed_over[1];
  write(path("step-2/manifest.json"), "");
  EXPECT_EQ(chosen_checkpoint(folder_).directory, "");
  EXPECT_EQ(chosen_checkpoint(folder_).passed_over.size(), 3u);
}

TEST_F(SavedCheckpoints, OneThatCannotBeLookedAtIsThereAndSaysWhy) {
  save("step-2");
  std::filesystem::create_symlink("step-9", path("step-9"));
  const CheckpointChoice choice = chosen_checkpoint(folder_);
  EXPECT_EQ(choice.directory, path("step-2"));
  ASSERT_EQ(choice.passed_over.size(), 1u);
  EXPECT_EQ(choice.passed_over[0],
            path("step-9/manifest.json") + ": cannot be looked at: Too many levels of symbolic links");
  EXPECT_EQ(chosen_checkpoint(path("step-9")).directory, path("step-9"));
  PosixFileSystem files;
  EXPECT_EQ(set_undone(saved_checkpoints(folder_)[0], files), path("step-9.undone"));
  EXPECT_EQ(chosen_checkpoint(folder_).passed_over.size(), 0u);
}

TEST_F(SavedCheckpoints, AreSetUndoneUnderANameThatIsFree) {
  PosixFileSystem files;
  for (const char* name : {"step-3.undone", "step-3.undone-2"}) {
    save("step-3");
    EXPECT_EQ(set_undone(saved_checkpoints(folder_)[0], files), path(name));
    EXPECT_TRUE(saved_checkpoints(folder_).empty());
    EXPECT_NO_THROW(verify_checkpoint(path(name)));
  }
  EXPECT_EQ(undone_checkpoints(folder_).size(), 2u);
}

TEST_F(SavedCheckpoints, TellWhatOthersHavePutThere) {
  save("step-1");
  EXPECT_TRUE(entries_of_others(path("step-1")).empty());
  for (const char* name : {"scores.json", "extra.safetensors"}) write(path(std::string("step-1/") + name), "");
  const std::vector<std::string> both{path("step-1/extra.safetensors"), path("step-1/scores.json")};
  EXPECT_EQ(entries_of_others(path("step-1")), both);
  write(path("step-1/manifest.json"), "{");
  EXPECT_EQ(entries_of_others(path("step-1")), std::vector<std::string>{path("step-1/scores.json")});
}

}  // namespace
}  // namespace braid::ckpt::saved_checkpoints_test
