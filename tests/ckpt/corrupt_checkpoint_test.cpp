// A checkpoint of which a byte was changed, cut off or taken away: found before any weight changes, and named.
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/manifest.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/ckpt/sample_tensors.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"

namespace braid::ckpt::corrupt_checkpoint_test {
namespace {

class CorruptCheckpoint : public ScratchFolder {
 protected:
  // The large tensors of one block alone, but in a full run.
  static std::vector<PlacedTensor> of_model(std::vector<PlacedTensor> tensors) {
    std::erase_if(tensors, [](const PlacedTensor& tensor) {
      const bool is_large = tensor.placement.global_shape.size() > 1 && tensor.placement.global_shape[0] > 0;
      return !full_run() && is_large && tensor.name.find("blocks.") != tensor.name.npos &&
             !tensor.name.ends_with("3.cube");
    });
    return tensors;
  }
  void SetUp() override {
    save({});
    model_ = path("step/model.safetensors");
    bytes_ = content(model_);
  }
  void save(const MeshSpec& spec) {
    const mesh::DeviceMesh mesh(spec);
    run_ranks(mesh.num_ranks(), [&](Communicator& world) {
      save_checkpoint(path("step"), {of_model(sample_tensors(mesh, world.rank()).wanted), {}}, world);
    });
  }
  std::vector<std::string> shards() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path("step"))) {
      if (holds_tensors(entry.path())) found.push_back(entry.path());
    }
    return found;
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
    const auto blank = of_model(sample_tensors(mesh::DeviceMesh({}), 0).blank);
    std::string what = "no error";
    try {
      action(blank);
    } catch (const IoError& error) {
      what = error.what();
      const auto fresh = of_model(sample_tensors(mesh::DeviceMesh({}), 0).blank);
      for (size_t i = 0; i < fresh.size(); ++i) EXPECT_TRUE(equal_bits(fresh[i].local, blank[i].local));
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

TEST_F(CorruptCheckpoint, LinksInItAreRefused) {
  for (const std::string& file : {model_, path("step/manifest.json")}) {
    const std::string elsewhere = path("elsewhere");
    std::filesystem::rename(file, elsewhere);
    std::filesystem::create_symlink(elsewhere, file);
    EXPECT_EQ(load_error(), cat(file, ": is a link, not a regular file"));
    EXPECT_EQ(verify_error(), load_error());
    std::filesystem::remove(file);
    std::filesystem::rename(elsewhere, file);
    EXPECT_EQ(load_error(), "no error");
  }
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
    EXPECT_EQ(load_error(), what) << "before any weight changes";
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

TEST_F(CorruptCheckpoint, OneBitInEvery64BytesOfEveryFileIsFound) {
  std::filesystem::remove_all(path("step"));
  save({.data = 2, .tensor = 2});
  for (const std::string& shard : shards()) {
    const std::string bytes = content(shard);
    const auto header = read_header(CheckedFile(shard));
    for (size_t at = 0; at < bytes.size(); at += 64) {
      const size_t byte = at + at / 64 * 29 % std::min<size_t>(64, bytes.size() - at);
      std::string flipped = bytes;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << at / 64 % 8));
      write(shard, flipped);
      const std::string what = verify_error();
      EXPECT_EQ(what.find(shard), 0u) << byte << ": " << what;
      EXPECT_TRUE(at % (64 * 31) != 0 || load_error() == what) << what;
      for (const auto& [info, begin, end] : header.tensors) {
        const auto in_data = static_cast<int64_t>(byte) - header.data_begin;
        const bool inside = in_data >= begin && in_data < end;
        EXPECT_TRUE(!inside || what.find(cat("tensor ", info.name, " has")) != what.npos) << what;
      }
    }
    write(shard, bytes);
  }
  EXPECT_EQ(load_error(), "no error");
}

TEST_F(CorruptCheckpoint, EveryKindOfTruncationIsFound) {
  std::filesystem::remove_all(path("step"));
  save({.pipe = 2, .tensor = 2});
  for (const std::string& shard : shards()) {
    const std::string bytes = content(shard);
    const auto header = read_header(CheckedFile(shard));
    std::vector<size_t> lengths{
        0, 4, 8, 30, static_cast<size_t>(header.data_begin), bytes.size() - 1, bytes.size() + 1};
    for (const auto& entry : header.tensors) {
      const int64_t begin = header.data_begin + entry.begin;
      for (const int64_t length : {begin, begin + 1}) {
        if (length < std::ssize(bytes)) lengths.push_back(static_cast<size_t>(length));
      }
    }
    for (const size_t length : lengths) {
      write(shard, length > bytes.size() ? bytes + "x" : bytes.substr(0, length));
      const std::string wanted = cat(shard, ": at byte ", std::min(length, bytes.size()), ": has ", length, " bytes");
      EXPECT_EQ(verify_error().find(wanted), 0u) << verify_error();
      EXPECT_EQ(load_error().find(wanted), 0u) << load_error();
    }
    std::filesystem::remove(shard);
    EXPECT_EQ(verify_error().find(shard), 0u);
    write(shard, bytes);
  }
}

// A rank that reads one part of a large file reads that part's blocks alone.
TEST_F(CorruptCheckpoint, TheBlockIsNamedAndOthersLoad) {
  const at::Tensor values = at::full({3, 1 << 20}, 0.5, at::kFloat);
  run_ranks(1, [&](Communicator& world) {
    save_checkpoint(path("step"), {{{"w", mesh::replicated({3, 1 << 20}), values}}, {}}, world);
  });
  std::string bytes = content(model_);
  const size_t at = bytes.size() - 2'000'000;
  bytes[at] = static_cast<char>(bytes[at] ^ 16);
  write(model_, bytes);
  const std::string what = verify_error();
  EXPECT_NE(what.find("at byte 8388608: tensor w has xxh3"), what.npos) << what;
  EXPECT_NE(what.find("in block 2 (bytes 8388608 to 12"), what.npos) << what;
  for (const int row : {0, 1, 2}) {
    mesh::Placement placement = mesh::split_dim({3, 1 << 20}, 0, 3, {row, 3});
    const at::Tensor local = at::zeros({1, 1 << 20});
    if (row < 1) {  // the header moves the end of the second into the third block
      load_checkpoint(path("step"), {{"w", placement, local}});
      EXPECT_TRUE(local.equal(values.narrow(0, 0, 1)));
    } else {
      EXPECT_THROW(load_checkpoint(path("step"), {{"w", placement, local}}), IoError);
      EXPECT_EQ(local.sum().item<double>(), 0);
    }
  }
}

}  // namespace
}  // namespace braid::ckpt::corrupt_checkpoint_test
