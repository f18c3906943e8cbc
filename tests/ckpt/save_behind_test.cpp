// Saves behind the training: the bytes of a save that is waited for, of the moment it began; one failure is everyone's.
#include "braid/ckpt/save_behind.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <future>
#include <limits>
#include <mutex>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/mesh/device_mesh.h"
#include "tests/ckpt/sample_tensors.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/thread_limit.h"

namespace braid::ckpt::save_behind_test {
namespace {

// Holds every new file up until it is let go, and refuses it then where `refuses`.
class HeldFileSystem final : public FileSystem {
 public:
  void let_go() { gate_.set_value(); }
  bool refuses = false;

  std::unique_ptr<WritableFile> create(const std::string& path) override {
    opened_.wait();
    if (refuses) throw IoError(path, -1, "cannot write: injected");
    return real_.create(path);
  }
  void create_directories(const std::string& path) override { real_.create_directories(path); }
  void sync_directory(const std::string& path) override { real_.sync_directory(path); }
  void rename(const std::string& from, const std::string& to) override { real_.rename(from, to); }
  void replace(const std::string& from, const std::string& to) override { real_.replace(from, to); }
  void remove_all(const std::string& path) override { real_.remove_all(path); }
  bool exists(const std::string& path) override { return real_.exists(path); }

 private:
  PosixFileSystem real_;
  std::promise<void> gate_;
  const std::shared_future<void> opened_ = gate_.get_future().share();
};

class SaveBehindTest : public ScratchFolder {
 protected:
  std::map<std::string, std::string> files(const std::string& name) const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : std::filesystem::directory_iterator(path(name)))
      contents[entry.path().filename()] = content(entry.path());
    return contents;
  }
};

const std::map<std::string, std::string> kTokenizer = {{"vocab.json", "{}"}};

// All steps have been done but what `body` does with the save of each.
template <class Body>
void on_ranks(const MeshSpec& spec, const Body& body) {
  const mesh::DeviceMesh mesh(spec);
  run_ranks(mesh.num_ranks(), [&](Communicator& world) { body(world, mesh); });
}

TEST_F(SaveBehindTest, HasTheBytesOfTheMomentItBegan) {
  for (const MeshSpec& spec : {MeshSpec{}, MeshSpec{.data = 3}, MeshSpec{.pipe = 2, .data = 1, .tensor = 2}}) {
    SCOPED_TRACE(cat("pipe ", spec.pipe, " data ", spec.data));
    on_ranks(spec, [&](Communicator& world, const mesh::DeviceMesh& mesh) {
      PosixFileSystem files;
      const auto first = sample_tensors(mesh, world.rank(), 1).wanted;
      SaveBehind behind(plan_save(first, world), world, files);
      for (const uint64_t step : {1, 2}) {
        const auto tensors = sample_tensors(mesh, world.rank(), step).wanted;
        const CheckpointInfo info{.step = static_cast<int64_t>(step)};
        save_checkpoint(path(cat("sync-", step)), {tensors, info, &kTokenizer}, world);
        behind.start(path(cat("behind-", step)), {tensors, info, &kTokenizer});
        for (const PlacedTensor& tensor : tensors) tensor.local.zero_();  // training goes on
        behind.finish();
      }
    });
    for (const int step : {1, 2}) EXPECT_EQ(files(cat("behind-", step)), files(cat("sync-", step)));
    EXPECT_NE(files("sync-1"), files("sync-2"));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
}

TEST_F(SaveBehindTest, NobodyWaitsForAFile) {
  HeldFileSystem held;
  on_ranks({.data = 2}, [&](Communicator& world, const mesh::DeviceMesh& mesh) {
    const auto tensors = sample_tensors(mesh, world.rank()).wanted;
    SaveBehind behind(plan_save(tensors, world), world, held);
    behind.start(path("saved"), {tensors, {}});
    EXPECT_TRUE(behind.under_way());
    EXPECT_FALSE(behind.advance()) << "the folder is there";
    EXPECT_TRUE(behind.busy());
    EXPECT_FALSE(std::filesystem::exists(path("saved")));
    world.barrier().wait_host();
    if (world.rank() == 0) held.let_go();
    EXPECT_FALSE(behind.advance()) << "written, and not published";
    EXPECT_TRUE(behind.advance());
    EXPECT_FALSE(behind.under_way());
  });
  verify_checkpoint(path("saved"));
}

// The save is whole, the rank is not busy for ever, and no other is left alone.
TEST_F(SaveBehindTest, ARankThatCanStartNoThreadSavesInItsStep) {
  on_ranks({.data = 2}, [&](Communicator& world, const mesh::DeviceMesh& mesh) {
    PosixFileSystem files;
    const auto tensors = sample_tensors(mesh, world.rank()).wanted;
    SaveBehind behind(plan_save(tensors, world), world, files);
    {
      const ThreadLimit none(world.rank() == 0 ? 0 : 100);
      behind.start(path("saved"), {tensors, {}});
      EXPECT_FALSE(world.rank() == 0 && behind.busy());
      behind.finish();
    }
    behind.start(path("again"), {tensors, {}});
    behind.finish();
  });
  verify_checkpoint(path("saved"));
  EXPECT_EQ(files("again"), files("saved"));
}

// The files of one rank cannot be written.
TEST_F(SaveBehindTest, AFailureOfOneRankIsEveryRanksAndKeepsWhatWasThere) {
  std::mutex lock;
  std::set<std::string> errors;
  int num_errors = 0;
  on_ranks({.data = 3}, [&](Communicator& world, const mesh::DeviceMesh& mesh) {
    HeldFileSystem files;
    files.let_go();
    const auto old = sample_tensors(mesh, world.rank(), 1).wanted, next = sample_tensors(mesh, world.rank(), 2).wanted;
    SaveBehind behind(plan_save(old, world), world, files);
    behind.start(path("saved"), {old, {.step = 1}});
    behind.finish();
    files.refuses = world.rank() == 1;
    behind.start(path("saved"), {next, {.step = 2}});
    try {
      behind.finish();
    } catch (const IoError& error) {
      const std::scoped_lock hold(lock);
      errors.insert(error.what());
      ++num_errors;
    }
    EXPECT_FALSE(behind.under_way());
    EXPECT_EQ(read_checkpoint_info(path("saved")).step, 1);
    world.barrier().wait_host();
    files.refuses = false;
    behind.start(path("saved"), {next, {.step = 3}});
    behind.finish();
  });
  EXPECT_EQ(num_errors, 3);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_TRUE(errors.begin()->ends_with(cat("; of rank 1 on ", host_name()))) << *errors.begin();
  EXPECT_NE(errors.begin()->find("cannot write: injected"), std::string::npos) << *errors.begin();
  verify_checkpoint(path("saved"));
  EXPECT_EQ(read_checkpoint_info(path("saved")).step, 3);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "nothing half-written is left";
}

TEST_F(SaveBehindTest, AWeightThatIsNotFiniteIsNamedAndNotSaved) {
  std::mutex lock;
  std::set<std::string> errors;
  on_ranks({.data = 2}, [&](Communicator& world, const mesh::DeviceMesh&) {
    PosixFileSystem files;
    const auto state =
        at::full({4}, std::numeric_limits<double>::infinity(), at::kDouble);  // is the optimizer's affair
    const std::vector<PlacedTensor> tensors = {{"a.weight", mesh::replicated({2}), at::full({2}, 1e308, at::kDouble)},
                                               {"b.weight", mesh::replicated({2}), at::ones({2})},
                                               {"adamw.first_moment/a", mesh::replicated({4}), state}};
    SaveBehind behind(plan_save(tensors, world), world, files);
    behind.start(path("saved"), {tensors, {.step = 1}});
    behind.finish();
    tensors[1].local[1] = std::numeric_limits<float>::quiet_NaN();
    behind.start(path("next"), {tensors, {.step = 2}});
    try {
      behind.finish();
    } catch (const IoError& error) {
      const std::scoped_lock hold(lock);
      errors.insert(error.what());
    }
  });
  EXPECT_EQ(errors, std::set<std::string>{cat(path("next"), ": b.weight is not finite; nothing is saved")});
  EXPECT_TRUE(std::filesystem::exists(path("saved")));
  EXPECT_FALSE(std::filesystem::exists(path("next")));
}

TEST_F(SaveBehindTest, GivenUpItPublishesNothing) {
  HeldFileSystem held;
  on_ranks({}, [&](Communicator& world, const mesh::DeviceMesh& mesh) {
    const auto tensors = sample_tensors(mesh, world.rank()).wanted;
    {
      SaveBehind behind(plan_save(tensors, world), world, held);
      behind.start(path("saved"), {tensors, {}});
      behind.advance();
      EXPECT_FALSE(std::filesystem::is_empty(folder_));
      held.let_go();
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
  });
}

}  // namespace
}  // namespace braid::ckpt::save_behind_test
