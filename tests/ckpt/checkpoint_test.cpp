// What one mesh saves, any other loads, bit for bit; what does not fit is refused before anything is written.
#include "braid/ckpt/checkpoint.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cstdlib>

#include "braid/base/errors.h"
#include "braid/ckpt/manifest.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/ckpt/sample_tensors.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"

namespace braid::checkpoint_test {
namespace {

const CheckpointInfo kInfo{42, "[model]\nlayers = 8\n# \"quoted\" \xC3\xA9\n", "bytes", 336};

std::string drawn(const MeshSpec& mesh) { return cat(mesh.data, " x ", mesh.pipe, " x ", mesh.tensor); }

class Checkpoint : public ScratchFolder {
 protected:
  void save(const MeshSpec& spec, const std::string& name) {
    const DeviceMesh mesh(spec);
    run_ranks(mesh.num_ranks(), [&](Communicator& world) {
      save_checkpoint(path(name), {sample_tensors(mesh, world.rank()).wanted, kInfo}, world);
    });
  }
  // Loading is not collective, so the ranks can be played one after another.
  void expect_loads(const MeshSpec& spec, const std::string& name) {
    const DeviceMesh mesh(spec);
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
  std::string model;
  for (const auto& saver : savers) {
    save(saver, "step");
    verify_checkpoint(path("step"));
    for (const auto& loader : meshes_up_to(8)) expect_loads(loader, "step");
    const auto bytes = content(path("step/model.safetensors"));
    EXPECT_TRUE(model.empty() || bytes == model) << "the files of " << drawn(saver) << " differ";
    model = bytes;
  }
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
    const DeviceMesh mesh({.data = 2});
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
  std::filesystem::create_directories(path("step/stray"));
  save({}, "step");
  save({.data = 2}, "step/");
  expect_loads({}, "step");
  EXPECT_FALSE(std::filesystem::exists(path("step/stray")));
  EXPECT_FALSE(std::filesystem::exists(path("step.old")));
  EXPECT_FALSE(std::filesystem::exists(path("step.tmp")));
}

TEST_F(Checkpoint, WeightsAloneLoadWithoutTheOptimizer) {
  save({.tensor = 2}, "step");
  auto tensors = sample_tensors(DeviceMesh({}), 0);
  std::erase_if(tensors.blank, [](const PlacedTensor& tensor) { return tensor.name.starts_with("adamw."); });
  std::filesystem::remove(path("step/optimizer.safetensors"));
  load_checkpoint(path("step"), tensors.blank);
  EXPECT_THROW(load_checkpoint(path("step"), sample_tensors(DeviceMesh({}), 0).blank), IoError);
}

TEST_F(Checkpoint, ListsEveryDifferenceAndWritesNothing) {
  save({}, "step");
  auto tensors = sample_tensors(DeviceMesh({}), 0).blank;
  const auto untouched = tensors[0].local.clone();
  tensors.push_back({"wte.weigth", replicated({13, 4}), at::zeros({13, 4})});
  tensors.push_back({"blocks.0.norm.weight", replicated({6}), at::zeros({6}, at::kDouble)});
  tensors.push_back({"count", replicated({}), at::zeros({})});
  EXPECT_EQ(config_error(tensors),
            "wte.weigth: is not in the checkpoint; nearest valid is wte.weight\n"
            "blocks.0.norm.weight = F64 [5]: in the checkpoint; this run needs F64 [6]\n"
            "count = I64 []: in the checkpoint; this run needs F32 []");
  EXPECT_TRUE(equal_bits(tensors[0].local, untouched));
}

TEST_F(Checkpoint, ABoxThatNobodyHoldsIsNamed) {
  const DeviceMesh mesh({.tensor = 2});
  auto tensors = sample_tensors(mesh, 1).wanted;
  std::erase_if(tensors, [](const PlacedTensor& tensor) { return tensor.name != "blocks.3.proj.weight"; });
  try {
    run_ranks(1, [&](Communicator& world) { save_checkpoint(path("step"), {tensors, kInfo}, world); });
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("tensor blocks.3.proj.weight is covered"), std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(path("step.tmp")));
}

TEST_F(Checkpoint, RanksThatDisagreeAreNamed) {
  try {
    run_ranks(2, [&](Communicator& world) {
      const Index shape = {2 + world.rank()};
      save_checkpoint(path("step"), {{{"w", replicated(shape), at::zeros(shape)}}, kInfo}, world);
    });
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("tensor w has one shape and type"), std::string::npos) << error.what();
  }
}

class CorruptCheckpoint : public Checkpoint {
 protected:
  void SetUp() override {
    save({}, "step");
    model_ = path("step/model.safetensors");
    bytes_ = content(model_);
  }
  // The error of loading, which must come before anything is written.
  std::string load_error() {
    return error_of([&](const auto& tensors) { load_checkpoint(path("step"), tensors); });
  }
  std::string verify_error() {
    return error_of([&](const auto&) { verify_checkpoint(path("step")); });
  }

  template <class Action>
  std::string error_of(const Action& action) {
    const auto tensors = sample_tensors(DeviceMesh({}), 0);
    std::string what = "no error";
    try {
      action(tensors.blank);
    } catch (const IoError& error) {
      what = error.what();
      const auto fresh = sample_tensors(DeviceMesh({}), 0).blank;
      for (size_t i = 0; i < fresh.size(); ++i) EXPECT_TRUE(equal_bits(fresh[i].local, tensors.blank[i].local));
    }
    return what;
  }

  std::string model_, bytes_;
};

TEST_F(CorruptCheckpoint, CutShort) {
  write(model_, bytes_.substr(0, bytes_.size() - 1));
  EXPECT_EQ(load_error(), cat(model_, ": at byte ", bytes_.size() - 1, ": has ", bytes_.size() - 1,
                              " bytes; the manifest says ", bytes_.size()));
  EXPECT_EQ(verify_error(), load_error());
}

TEST_F(CorruptCheckpoint, Missing) {
  std::filesystem::remove(model_);
  EXPECT_EQ(load_error(), cat(model_, ": cannot open: No such file or directory"));
  std::filesystem::remove(path("step/manifest.json"));
  EXPECT_EQ(load_error(), cat(path("step/manifest.json"), ": cannot open: No such file or directory"));
}

TEST_F(CorruptCheckpoint, AFlippedByteOfDataIsFoundByVerify) {
  const CheckedFile file(model_);
  const auto header = read_header(file);
  for (const auto& entry : {header.tensors.front(), header.tensors.back()}) {
    auto flipped = bytes_;
    const int64_t at = header.data_begin + entry.begin;
    flipped[static_cast<size_t>(at + (entry.end - entry.begin) / 2)] ^= 1;
    write(model_, flipped);
    const auto what = verify_error();
    EXPECT_EQ(what.find(cat(model_, ": at byte ", at, ": tensor ", entry.info.name, " has xxh3 ")), 0u) << what;
  }
}

TEST_F(CorruptCheckpoint, AFlippedByteOfTheHeaderNeverLoadsOtherTensors) {
  const auto length = static_cast<size_t>(read_header(CheckedFile(model_)).data_begin);
  const size_t after_metadata = bytes_.find("}") + 2;
  for (size_t at = 0; at < length; at += length / 97 + 1) {
    auto flipped = bytes_;
    flipped[at] ^= 4;
    write(model_, flipped);
    EXPECT_NE(verify_error(), "no error") << at;
    const bool harmless = bytes_[at] == ' ' || (at > 8 && at < after_metadata);
    EXPECT_TRUE(harmless || load_error() != "no error") << at << " " << bytes_.substr(at, 20);
  }
}

TEST_F(CorruptCheckpoint, SwappedFilesAreNamed) {
  std::filesystem::copy_file(path("step/optimizer.safetensors"), model_,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(load_error().find("bytes; the manifest says"), std::string::npos);
}

TEST_F(CorruptCheckpoint, AnyFlippedByteOfTheManifestIsFound) {
  const auto manifest = path("step/manifest.json");
  const auto text = content(manifest);
  for (size_t at = 0; at < text.size(); at += text.size() / 211 + 1) {
    for (const char flip : {1, 32, -128}) {
      auto flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ flip);
      EXPECT_THROW(parse_manifest(manifest, flipped), IoError) << at;
    }
    EXPECT_THROW(parse_manifest(manifest, text.substr(0, at)), IoError) << at;
  }
}

}  // namespace
}  // namespace braid::checkpoint_test
