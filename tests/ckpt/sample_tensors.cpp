// Small whole numbers, by a key of seed and name.
#include "tests/ckpt/sample_tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cstring>

#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid {
namespace {

constexpr int kBlocks = 8;
constexpr int64_t kEven = 840;  // divisible by 1 .. 8

// Element i is a small whole number that depends on (seed, name, i), exact in every type.
at::Tensor whole_tensor(const std::string& name, const mesh::Index& shape, at::ScalarType type, uint64_t seed) {
  const auto whole = at::empty(shape, at::kDouble);
  const uint64_t key = stream_key(seed, name);
  auto* data = whole.mutable_data_ptr<double>();
  for (int64_t i = 0; i < whole.numel(); ++i)
    data[i] = static_cast<double>(random_bits(key, static_cast<uint64_t>(i)) % 251);
  return whole.to(type);
}

class Builder {
 public:
  Builder(const mesh::DeviceMesh& mesh, int rank, uint64_t seed) : mesh_(mesh), at_(mesh.coords(rank)), seed_(seed) {}

  void add(const std::string& name, mesh::Placement placement, at::ScalarType type) {
    const auto whole = whole_tensor(name, placement.global_shape, type, seed_);
    const auto blank = at::full(placement.local_shape, type == at::kByte ? 249 : kPadding, type);
    const auto wanted = blank.clone();
    for (const auto& piece : placement.pieces) {
      ckpt::part_of(wanted, piece).copy_(ckpt::part_of(whole, {piece.global, piece.global.begin}));
    }
    tensors_.wanted.push_back({name, placement, wanted});
    tensors_.blank.push_back({name, std::move(placement), blank});
  }
  int tensor() const { return at_[mesh::Axis::Tensor]; }
  int parts() const { return mesh_.size(mesh::Axis::Tensor); }
  bool on_stage(int stage) const { return at_[mesh::Axis::Pipe] == stage; }
  int last_stage() const { return mesh_.size(mesh::Axis::Pipe) - 1; }
  SampleTensors take() { return std::move(tensors_); }

 private:
  const mesh::DeviceMesh& mesh_;
  mesh::Coords at_;
  uint64_t seed_;
  SampleTensors tensors_;
};

void add_block(Builder& b, const std::string& block) {
  b.add(block + ".norm.weight", mesh::replicated({5}), at::kDouble);
  b.add("adamw.first_moment/" + block + ".norm.weight", mesh::replicated({5}), at::kFloat);
}

void add_big_block(Builder& b, const std::string& block) {
  const auto qkv = mesh::split_segments({3 * kEven, 2}, 0, 3, {b.tensor(), b.parts(), mesh::Axis::Tensor});
  b.add(block + ".qkv.weight", qkv, at::kFloat);
  b.add("adamw.first_moment/" + block + ".qkv.weight", qkv, at::kBFloat16);
  b.add(block + ".proj.weight", mesh::split_dim({3, kEven}, 1, kEven, {b.tensor(), b.parts(), mesh::Axis::Tensor}),
        at::kDouble);
  b.add(block + ".cube", mesh::split_dim({2, kEven, 3}, 1, kEven, {b.tensor(), b.parts(), mesh::Axis::Tensor}),
        at::kByte);
}

}  // namespace

SampleTensors sample_tensors(const mesh::DeviceMesh& mesh, int rank, uint64_t seed) {
  Builder b(mesh, rank, seed);
  const int64_t padded = (13 + b.parts() - 1) / b.parts() * b.parts();
  if (b.on_stage(0) || b.on_stage(b.last_stage())) {
    b.add("wte.weight", mesh::split_dim({13, 4}, 0, padded, {b.tensor(), b.parts(), mesh::Axis::Tensor}), at::kFloat);
  }
  if (b.on_stage(0)) b.add("adamw.empty/table", mesh::replicated({0, 3}), at::kFloat);
  if (b.on_stage(b.last_stage())) b.add("count", mesh::replicated({}), at::kLong);
  for (int block = 0; block < kBlocks; ++block) {
    if (!b.on_stage(block * mesh.size(mesh::Axis::Pipe) / kBlocks)) continue;
    add_block(b, cat("blocks.", block));
    if (block % 4 == 3) add_big_block(b, cat("blocks.", block));
  }
  return b.take();
}

std::vector<MeshSpec> meshes_up_to(int max_ranks) {
  std::vector<MeshSpec> meshes;
  for (int data = 1; data <= max_ranks; ++data) {
    for (int pipe = 1; data * pipe <= max_ranks; ++pipe) {
      for (int tensor = 1; data * pipe * tensor <= max_ranks; ++tensor) {
        meshes.push_back({.pipe = pipe, .data = data, .tensor = tensor});
      }
    }
  }
  return meshes;
}

bool equal_bits(const at::Tensor& a, const at::Tensor& b) {
  const auto x = ckpt::bytes_of(a), y = ckpt::bytes_of(b);
  return a.sizes().equals(b.sizes()) && a.scalar_type() == b.scalar_type() &&
         (x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0);
}

}  // namespace braid
