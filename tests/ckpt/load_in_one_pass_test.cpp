// Each block read once and compared: every mesh's tensors come back, and what was changed is every rank's IoError.
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/checkpoint_reader.h"
#include "braid/ckpt/manifest.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/ckpt/sample_tensors.h"
#include "tests/support/former_checkpoint.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"

namespace braid::ckpt::load_in_one_pass_test {
namespace {

constexpr int64_t kRows = 3000, kColumns = 1024;  // of float32: three blocks of 4 MiB, the last not full

class LoadInOnePass : public ScratchFolder {
 protected:
  void save(const MeshSpec& spec) {
    const mesh::DeviceMesh mesh(spec);
    run_ranks(mesh.num_ranks(), [&](Communicator& world) {
      save_checkpoint(path("step"), {sample_tensors(mesh, world.rank()).wanted, {}}, world);
    });
  }
  void expect_loads(const MeshSpec& spec) {
    const mesh::DeviceMesh mesh(spec);
    run_ranks(mesh.num_ranks(), [&](Communicator& world) {
      const auto tensors = sample_tensors(mesh, world.rank());
      load_in_one_pass(path("step"), tensors.blank, world);
      for (size_t i = 0; i < tensors.wanted.size(); ++i) {
        EXPECT_TRUE(equal_bits(tensors.blank[i].local, tensors.wanted[i].local))
            << tensors.wanted[i].name << " on rank " << world.rank() << " of " << mesh.num_ranks();
      }
    });
  }
  // One tensor of several blocks beside a small one, by one rank.
  void save_large() {
    const at::Tensor bias = at::arange(5, at::kFloat);
    run_ranks(1, [&](Communicator& world) {
      const std::vector<PlacedTensor> tensors{{"w", mesh::replicated({kRows, kColumns}), large_values()},
                                              {"bias", mesh::replicated({5}), bias}};
      save_checkpoint(path("step"), {tensors, {}}, world);
    });
  }
  static at::Tensor large_values() { return at::arange(kRows * kColumns, at::kFloat).view({kRows, kColumns}); }
  // Returns the errors of two ranks that load half of the rows each.
  std::vector<std::string> errors_of_halves() {
    std::vector<std::string> errors(2, "no error");
    run_ranks(2, [&](Communicator& world) {
      const mesh::Placement half = mesh::split_dim({kRows, kColumns}, 0, kRows, {world.rank(), 2});
      const at::Tensor local = at::zeros(half.local_shape);
      try {
        load_in_one_pass(path("step"), {{"w", half, local}}, world);
        EXPECT_TRUE(local.equal(large_values().narrow(0, world.rank() * kRows / 2, kRows / 2)));
      } catch (const IoError& error) {
        errors[static_cast<size_t>(world.rank())] = error.what();
      }
    });
    return errors;
  }
  std::string verify_error() {
    try {
      verify_checkpoint(path("step"));
    } catch (const IoError& error) {
      return error.what();
    }
    return "no error";
  }
  void flip(const std::string& file, int64_t byte) {
    std::string bytes = content(file);
    bytes[static_cast<size_t>(byte)] ^= 1;
    write(file, bytes);
  }

  const std::string model_ = path("step/model.safetensors");
};

TEST_F(LoadInOnePass, WhatOneMeshSavesEveryOtherLoads) {
  const auto savers = full_run() ? meshes_up_to(8) : std::vector<MeshSpec>{{}, {.pipe = 2, .tensor = 2}, {.tensor = 7}};
  const auto loaders =
      full_run() ? meshes_up_to(8) : std::vector<MeshSpec>{{}, {.data = 3}, {.pipe = 2, .tensor = 3}, {.tensor = 8}};
  for (const MeshSpec& saver : savers) {
    save(saver);
    for (const MeshSpec& loader : loaders) expect_loads(loader);
  }
}

// Into every second column of a transposed tensor: runs of one element.
TEST_F(LoadInOnePass, AnyOrderOfMemoryIsFilled) {
  save_large();
  run_ranks(1, [&](Communicator& world) {
    const at::Tensor memory = at::zeros({kColumns, 2 * kRows});
    const at::Tensor local = memory.slice(1, 0, 2 * kRows, 2).t();
    load_in_one_pass(path("step"), {{"w", mesh::replicated({kRows, kColumns}), local}}, world);
    EXPECT_TRUE(local.equal(large_values()));
    EXPECT_EQ(memory.slice(1, 1, 2 * kRows, 2).count_nonzero().item<int64_t>(), 0);
  });
}

TEST_F(LoadInOnePass, AChangedByteIsTheSameErrorOnAllRanks) {
  save_large();
  EXPECT_EQ(errors_of_halves(), (std::vector<std::string>{"no error", "no error"}));
  const auto bytes = static_cast<int64_t>(content(model_).size());
  for (const int64_t byte : {bytes - 1, bytes / 2, int64_t{5000}}) {  // of the second rank alone, of both, of the first
    flip(model_, byte);
    const std::string wanted = verify_error();
    EXPECT_NE(wanted.find(cat("tensor w has xxh3")), wanted.npos) << wanted;
    EXPECT_NE(wanted.find(cat("in block ", byte / kBlockBytes)), wanted.npos) << wanted;
    EXPECT_EQ(errors_of_halves(), (std::vector<std::string>{wanted, wanted}));
    flip(model_, byte);
  }
}

TEST_F(LoadInOnePass, OneRanksMissingFileIsTheSameErrorOnAllRanks) {
  save({.pipe = 2});
  const std::string file = path("step/model-00002-of-00002.safetensors");
  std::filesystem::remove(file);
  const mesh::DeviceMesh mesh({.pipe = 2});
  run_ranks(2, [&](Communicator& world) {
    try {
      load_in_one_pass(path("step"), sample_tensors(mesh, world.rank()).blank, world);
      ADD_FAILURE() << "rank " << world.rank();
    } catch (const IoError& error) {
      EXPECT_EQ(error.path(), file);
    }
  });
}

// Version 3 has a digest for all of a file, which ranks compare file by file.
TEST_F(LoadInOnePass, FilesOfOneLargeBlockAreCompared) {
  save_large();
  make_former(path("step"), 3);
  EXPECT_EQ(errors_of_halves(), (std::vector<std::string>{"no error", "no error"}));
  flip(model_, static_cast<int64_t>(content(model_).size()) - 1);
  const std::string wanted = verify_error();
  EXPECT_NE(wanted, "no error");
  EXPECT_EQ(errors_of_halves(), (std::vector<std::string>{wanted, wanted}));
}

// A block in which several boxes lie is counted once; one that two ranks want is known to both.
TEST_F(LoadInOnePass, BlocksAreWantedOnceByARank) {
  save_large();
  CheckpointReader reader(path("step"));
  const auto wanted = [&](const mesh::Placement& placement) {
    const std::vector<PlacedTensor> tensors{{"w", placement, at::zeros(placement.local_shape)},
                                            {"bias", mesh::replicated({5}), at::zeros({5})}};
    return reader.reads_of(tensors).wanted();
  };
  EXPECT_EQ(wanted(mesh::replicated({kRows, kColumns})), (std::vector<int64_t>{1, 1, 1}));
  const std::vector<int64_t> upper = wanted(mesh::split_dim({kRows, kColumns}, 0, kRows, {0, 2})),
                             lower = wanted(mesh::split_dim({kRows, kColumns}, 0, kRows, {1, 2}));
  ASSERT_EQ(upper.size(), 3u);
  ASSERT_EQ(lower.size(), 3u);
  EXPECT_EQ(upper[0] + lower[0], 2) << "bias lies in front";
  EXPECT_EQ(upper[1] + lower[1], 2);
  EXPECT_EQ(upper[2] + lower[2], 1);
}

// Returns the bytes that this process has read.
int64_t bytes_read() {
  std::ifstream counts("/proc/self/io");
  std::string name;
  int64_t bytes = -1;
  counts >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

TEST_F(LoadInOnePass, EachBlockIsReadOnce) {
  save_large();
  const auto whole = static_cast<int64_t>(content(model_).size());
  run_ranks(1, [&](Communicator& world) {
    const at::Tensor weight = at::zeros({kRows, kColumns}), bias = at::zeros({5});
    const int64_t before = bytes_read();
    load_in_one_pass(path("step"),
                     {{"w", mesh::replicated({kRows, kColumns}), weight}, {"bias", mesh::replicated({5}), bias}},
                     world);
    const int64_t read = bytes_read() - before;
    EXPECT_GE(read, whole);
    EXPECT_LT(read, whole + (1 << 18)) << "the manifest and headers beside the blocks";
  });
}

// The first rank asks for what is there, the second does not.
TEST_F(LoadInOnePass, ADifferenceIsTheSameErrorOnAllRanks) {
  save_large();
  run_ranks(2, [&](Communicator& world) {
    const at::Tensor bias = at::zeros({5});
    try {
      load_in_one_pass(path("step"), {{world.rank() == 0 ? "bias" : "bais", mesh::replicated({5}), bias}}, world);
      ADD_FAILURE() << "rank " << world.rank();
    } catch (const ConfigError& error) {
      ASSERT_EQ(error.problems().size(), 1u) << error.what();
      EXPECT_EQ(error.problems()[0].key, "bais");
    }
    EXPECT_EQ(bias.count_nonzero().item<int64_t>(), 0);
  });
}

}  // namespace
}  // namespace braid::ckpt::load_in_one_pass_test
