// A checkpoint in other files is the same one; where two differ, it is said in what.
#include "braid/ckpt/rewrite.h"

#include <ATen/ops/full.h>

#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/compare.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/ckpt/sample_tensors.h"
#include "tests/support/scratch_folder.h"

namespace braid::ckpt::rewrite_test {
namespace {

using Kind = TensorDifference::Kind;

class Rewrite : public ScratchFolder {
 protected:
  void save(const MeshSpec& spec, const std::string& name, const std::function<void(PlacedTensor&)>& change = nullptr) {
    const mesh::DeviceMesh mesh(spec);
    const std::map<std::string, std::string> tokenizer{{"tokenizer.json", "{}"}};
    run_ranks(mesh.num_ranks(), [&](Communicator& world) {
      auto tensors = sample_tensors(mesh, world.rank()).wanted;
      for (PlacedTensor& tensor : tensors) {
        if (change) change(tensor);
      }
      save_checkpoint(path(name), {tensors, {8, "", "tok", 64}, &tokenizer}, world);
    });
  }
  std::vector<TensorDifference> differences(const std::string& a, const std::string& b) {
    CheckpointReader first(path(a)), second(path(b));
    return compared(first, second);
  }
  size_t num_shards(const std::string& name) {
    size_t count = 0;
    for (const auto& [file, said] : read_manifest(path(name)).files) count += holds_tensors(file) ? 1 : 0;
    return count;
  }

  PosixFileSystem files_;
};

TEST_F(Rewrite, IsTheSameCheckpointInOtherFiles) {
  save({}, "one");
  save({.pipe = 2, .data = 2, .tensor = 2}, "eight");
  rewrite_checkpoint({path("eight"), path("whole")}, files_);
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "tokenizer.json", "manifest.json"}) {
    EXPECT_TRUE(content(path(cat("whole/", file))) == content(path(cat("one/", file)))) << file;
  }
  rewrite_checkpoint({path("one"), path("three"), 3}, files_);
  EXPECT_EQ(num_shards("three"), 6u);
  verify_checkpoint(path("three"));
  EXPECT_TRUE(differences("three", "eight").empty());
  EXPECT_EQ(read_checkpoint_info(path("three")).step, 8);
}

TEST_F(Rewrite, WeightsAlone) {
  save({.tensor = 2}, "step");
  rewrite_checkpoint({path("step"), path("weights"), 1, RewriteRequest::Tensors::Weights}, files_);
  EXPECT_FALSE(std::filesystem::exists(path("weights/optimizer.safetensors")));
  for (const TensorDifference& found : differences("step", "weights")) {
    EXPECT_EQ(found.kind, Kind::OnlyInFirst);
    EXPECT_NE(found.name.find('/'), found.name.npos);
  }
}

TEST_F(Rewrite, NeverReplacesAndNeverCopiesDamage) {
  save({}, "step");
  std::filesystem::create_directory(path("there"));
  EXPECT_THROW(rewrite_checkpoint({path("step"), path("there")}, files_), IoError);
  EXPECT_TRUE(std::filesystem::is_empty(path("there")));
  std::string bytes = content(path("step/model.safetensors"));
  bytes.back() ^= 1;
  write(path("step/model.safetensors"), bytes);
  EXPECT_THROW(rewrite_checkpoint({path("step"), path("new")}, files_), IoError);
  EXPECT_FALSE(std::filesystem::exists(path("new")));
}

TEST_F(Rewrite, DifferencesAreNamed) {
  save({}, "a");
  save({}, "b", [](PlacedTensor& tensor) {
    if (tensor.name == "wte.weight") tensor.local.view(-1)[5] += 0.5;
    if (tensor.name == "count") tensor = {"total", tensor.placement, tensor.local};
    if (tensor.name == "blocks.0.norm.weight") tensor.local = tensor.local.to(at::kFloat);
    if (tensor.name == "blocks.1.norm.weight") tensor.local[0] = std::numeric_limits<double>::quiet_NaN();
  });
  const auto found = differences("a", "b");
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0].name + found[0].first + found[0].second, "blocks.0.norm.weightF64 [5]F32 [5]");
  EXPECT_EQ(found[1].elements, 1);
  EXPECT_TRUE(std::isnan(found[1].largest));
  EXPECT_EQ(found[2].kind, Kind::OnlyInFirst);
  EXPECT_EQ(found[3].kind, Kind::OnlyInSecond);
  EXPECT_EQ(found[4].name, "wte.weight");
  EXPECT_EQ(found[4].elements, 1);
  EXPECT_EQ(found[4].largest, 0.5);
}

}  // namespace
}  // namespace braid::ckpt::rewrite_test
