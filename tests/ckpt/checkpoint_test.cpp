// Every mesh loads the checkpoints of every other, bit for bit; mismatches are refused before anything is written.
#include "braid/ckpt/checkpoint.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint_writer.h"
#include "braid/ckpt/manifest.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/ckpt/sample_tensors.h"
#include "tests/support/former_checkpoint.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"

namespace braid::ckpt::checkpoint_test {
namespace {

const CheckpointInfo kInfo{42, "[model]\nlayers = 8\n# \"quoted\" \xC3\xA9\n", "bytes", 336};

std::string drawn(const MeshSpec& mesh) { return cat(mesh.data, " x ", mesh.pipe, " x ", mesh.tensor); }

class Checkpoint : public ScratchFolder {
 protected:
  void save(const MeshSpec& spec, const std::string& name) {
    const mesh::DeviceMesh mesh(spec);
    run_ranks(mesh.num_ranks(), [&](Communicator& world) {
      save_checkpoint(path(name), {sample_tensors(mesh, world.rank()).wanted, kInfo}, world);
    });
  }
  // Loading is not collective, so the ranks can be played one after another.
  void expect_loads(const MeshSpec& spec, const std::string& name) {
    const mesh::DeviceMesh mesh(spec);
    for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
      const auto tensors = sample_tensors(mesh, rank);
      load_checkpoint(path(name), tensors.blank);
      for (size_t i = 0; i < tensors.wanted.size(); ++i) {
        EXPECT_TRUE(equal_bits(tensors.blank[i].local, tensors.wanted[i].local))
            << tensors.wanted[i].name << " on rank " << rank << " of " << drawn(spec);
      }
    }
  }
  std::string config_error(const std::vector<PlacedTensor>& tensors) {
    try {
      load_checkpoint(path("step"), tensors);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(Checkpoint, WhatOneMeshSavesEveryOtherLoads) {
  const bool full = full_run();
  const auto savers =
      full ? meshes_up_to(8)
           : std::vector<MeshSpec>{
                 {}, {.pipe = 2, .data = 2, .tensor = 2}, {.pipe = 3, .tensor = 2}, {.pipe = 5}, {.tensor = 7}};
  for (const auto& saver : savers) {
    save(saver, "step");
    verify_checkpoint(path("step"));
    for (const auto& loader : meshes_up_to(8)) expect_loads(loader, "step");
  }
}

TEST_F(Checkpoint, EveryRankWritesAFileOfItsOwn) {
  save({.data = 2, .tensor = 2}, "step");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path("step"))) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{
                       "manifest.json", "model-00001-of-00004.safetensors", "model-00002-of-00004.safetensors",
                       "model-00003-of-00004.safetensors", "model-00004-of-00004.safetensors",
                       "optimizer-00001-of-00004.safetensors", "optimizer-00002-of-00004.safetensors",
                       "optimizer-00003-of-00004.safetensors", "optimizer-00004-of-00004.safetensors"}));
  const auto header = read_header(CheckedFile(path("step/model-00001-of-00004.safetensors")));
  EXPECT_TRUE(std::any_of(header.tensors.begin(), header.tensors.end(), [](const TensorEntry& entry) {
    return entry.info.name.find(".weight[") != std::string::npos;
  }));
}

// A checkpoint of version 3: whole tensors, a digest for each file.
TEST_F(Checkpoint, AnOlderOneLoadsOnEveryMesh) {
  save({}, "step");
  make_former(path("step"), 3);
  verify_checkpoint(path("step"));
  for (const MeshSpec& mesh : {MeshSpec{}, MeshSpec{.pipe = 2, .tensor = 3}}) expect_loads(mesh, "step");
  std::string bytes = content(path("step/model.safetensors"));
  bytes.back() ^= 1;
  write(path("step/model.safetensors"), bytes);
  EXPECT_THROW(verify_checkpoint(path("step")), IoError);
}

TEST_F(Checkpoint, InfoComesBack) {
  save({.pipe = 2}, "step");
  const auto info = read_checkpoint_info(path("step"));
  EXPECT_EQ(info.step, kInfo.step);
  EXPECT_EQ(info.config_toml, kInfo.config_toml);
  EXPECT_EQ(info.tokenizer, kInfo.tokenizer);
  EXPECT_EQ(info.next_sample, kInfo.next_sample);
}

TEST_F(Checkpoint, TheTokenizersFilesGoInsideAndAreVerified) {
  save({}, "step");
  EXPECT_EQ(tokenizer_folder(path("step")), "");
  const std::map<std::string, std::string> files{{"tokenizer.json", "{\"model\": {}}"},
                                                 {"tokenizer_config.json", "{}"}};
  run_ranks(2, [&](Communicator& world) {
    const mesh::DeviceMesh mesh({.data = 2});
    save_checkpoint(path("step"), {sample_tensors(mesh, world.rank()).wanted, kInfo, &files}, world);
  });
  EXPECT_EQ(tokenizer_folder(path("step/")), path("step"));
  verify_checkpoint(path("step"));
  expect_loads({.tensor = 2}, "step");
  for (const auto& [name, bytes] : files) EXPECT_EQ(content(path("step/" + name)), bytes);
  const auto file = path("step/tokenizer.json");
  for (const char* changed : {"{\"model\": []}", "{}"}) {
    write(file, changed);
    for (const auto& read : {&verify_checkpoint, +[](const std::string& step) { tokenizer_folder(step); }}) {
      try {
        read(path("step"));
        ADD_FAILURE() << changed;
      } catch (const IoError& error) {
        EXPECT_EQ(error.path(), file);
      }
    }
  }
}

TEST_F(Checkpoint, AnOldCheckpointIsReplaced) {
  save({}, "step");
  std::filesystem::create_directories(path("step/stray"));
  save({.data = 2}, "step/");
  expect_loads({}, "step");
  EXPECT_FALSE(std::filesystem::exists(path("step/stray")));
  EXPECT_FALSE(std::filesystem::exists(path("step.old")));
  EXPECT_TRUE(leftovers(path("step")).empty());
}

TEST_F(Checkpoint, WeightsAloneLoadWithoutTheOptimizer) {
  save({}, "step");
  auto tensors = sample_tensors(mesh::DeviceMesh({}), 0);
  std::erase_if(tensors.blank, [](const PlacedTensor& tensor) { return tensor.name.starts_with("adamw."); });
  std::filesystem::remove(path("step/optimizer.safetensors"));
  load_checkpoint(path("step"), tensors.blank);
  EXPECT_THROW(load_checkpoint(path("step"), sample_tensors(mesh::DeviceMesh({}), 0).blank), IoError);
}

TEST_F(Checkpoint, ListsEveryDifferenceAndWritesNothing) {
  save({}, "step");
  auto tensors = sample_tensors(mesh::DeviceMesh({}), 0).blank;
  const auto untouched = tensors[0].local.clone();
  tensors.push_back({"wte.weigth", mesh::replicated({13, 4}), at::zeros({13, 4})});
  tensors.push_back({"blocks.0.norm.weight", mesh::replicated({6}), at::zeros({6}, at::kDouble)});
  tensors.push_back({"count", mesh::replicated({}), at::zeros({})});
  EXPECT_EQ(config_error(tensors),
            "wte.weigth: is not in the checkpoint; nearest valid is wte.weight\n"
            "blocks.0.norm.weight = F64 [5]: in the checkpoint; this run needs F64 [6]\n"
            "count = I64 []: in the checkpoint; this run needs F32 []");
  EXPECT_TRUE(equal_bits(tensors[0].local, untouched));
}

TEST_F(Checkpoint, ABoxThatNobodyHoldsIsNamed) {
  const mesh::DeviceMesh mesh({.tensor = 2});
  auto tensors = sample_tensors(mesh, 1).wanted;
  std::erase_if(tensors, [](const PlacedTensor& tensor) { return tensor.name != "blocks.3.proj.weight"; });
  try {
    run_ranks(1, [&](Communicator& world) { save_checkpoint(path("step"), {tensors, kInfo}, world); });
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("tensor blocks.3.proj.weight is covered"), std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(leftovers(path("step")).empty());
}

TEST_F(Checkpoint, RanksThatDisagreeAreNamed) {
  try {
    run_ranks(2, [&](Communicator& world) {
      const mesh::Index shape = {2 + world.rank()};
      save_checkpoint(path("step"), {{{"w", mesh::replicated(shape), at::zeros(shape)}}, kInfo}, world);
    });
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("tensor w has one shape and type"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace braid::ckpt::checkpoint_test
