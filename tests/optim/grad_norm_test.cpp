// The global norm on meshes of thread ranks against the norm of the assembled global tensors.
#include "braid/optim/grad_norm.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"

namespace braid::optim::grad_norm_test {
namespace {

const ParamOrder kOrder{"wte", "wpe", "up", "up.bias", "qkv", "down", "norm", "last"};
constexpr int kNumBlocks = 4;

// Four blocks: a padded vocabulary split by rows and tied, a replicated table, column, row and segment splits
// with copies.
std::vector<layout::BlockSpec> model(int part, int parts) {
  const auto split = [&](mesh::Index shape, int dim, int64_t padded) {
    return mesh::split_dim(shape, dim, padded, {part, parts, mesh::Axis::Tensor});
  };
  const int copied = parts == 6 ? 3 : 1;  // two or more ranks hold copies of keys and values
  const layout::ParamSpec wte{"wte", split({250, 30}, 0, 252), {}, model::WeightDecay::Yes, 0, 2};
  layout::ParamSpec head = wte;
  head.use = 1;
  return {
      {"embedding", {wte, {"wpe", mesh::replicated({64, 30})}}},
      {"blocks.0", {{"up", split({120, 30}, 0, 120)}, {"up.bias", split({120}, 0, 120)}}},
      {"blocks.1",
       {{"qkv", mesh::split_segments({72, 30}, 0, std::vector<mesh::Segment>{{48, parts}, {12, copied}, {12, copied}},
                                     {part, parts, mesh::Axis::Tensor})},
        {"down", split({30, 120}, 1, 120)}}},
      {"head", {{"norm", mesh::replicated({30})}, head, {"last", mesh::replicated({5, 7})}}}};
}

double element(const std::string& name, int64_t global) {
  return (name == "wte" ? 10 : 1) * (2 * uniform(stream_key(11, name), global) - 1);
}

// The gradient of every rank is its part of the same global tensor; padding is zero.
template <class T>
void fill(param::ParamStore& store) {
  for (param::Parameter& param : store.params()) {
    const mesh::Placement& at = param.placement;
    const int64_t columns = at.global_shape.size() == 2 ? at.global_shape[1] : 1;
    const int64_t local_columns = at.local_shape.size() == 2 ? at.local_shape[1] : 1;
    T* grad = param.main_grad.mutable_data_ptr<T>();
    for (const mesh::Piece& piece : at.pieces) {
      const bool matrix = at.global_shape.size() == 2;
      const int64_t first = matrix ? piece.global.begin[1] : 0, end = matrix ? piece.global.end[1] : 1;
      for (int64_t r = piece.global.begin[0]; r < piece.global.end[0]; ++r) {
        for (int64_t c = first; c < end; ++c) {
          const int64_t row = r - piece.global.begin[0] + piece.local_begin[0];
          const int64_t column = c - first + (matrix ? piece.local_begin[1] : 0);
          grad[row * local_columns + column] = static_cast<T>(element(param.name, r * columns + c));
        }
      }
    }
  }
}

double brute_force_norm() {
  param::ParamStore whole(model(0, 1), Reduction::Fast, at::kDouble, 1);
  long double sum = 0;
  for (const param::Parameter& param : whole.params()) {
    for (int64_t i = 0; i < mesh::num_elements(param.placement.global_shape); ++i) {
      const double value = element(param.name, i);
      sum += value * value;
    }
  }
  return static_cast<double>(std::sqrt(sum));
}

struct Layout {
  int pipe = 1, tensor = 1;
};

// The blocks of a stage: stages of as even a size as possible, in order.
std::vector<layout::BlockSpec> stage_blocks(const std::vector<layout::BlockSpec>& blocks, int stage, int num_stages) {
  return {blocks.begin() + kNumBlocks * stage / num_stages, blocks.begin() + kNumBlocks * (stage + 1) / num_stages};
}

template <class T>
double norm_on(const Layout& layout) {
  const mesh::DeviceMesh mesh(MeshSpec{.pipe = layout.pipe, .tensor = layout.tensor});
  std::mutex mutex;
  std::vector<double> norms;
  run_ranks(mesh.num_ranks(), [&](Communicator& world) {
    const mesh::Coords coords = mesh.coords(world.rank());
    const auto blocks =
        stage_blocks(model(coords[mesh::Axis::Tensor], layout.tensor), coords[mesh::Axis::Pipe], layout.pipe);
    param::ParamStore store(blocks, Reduction::Reproducible, c10::CppTypeToScalarType<T>::value, 1);
    fill<T>(store);
    // A tied parameter is spoken for where its first use is.
    const auto counts = [&](const param::Parameter& p) {
      return mesh::counts_once(p.placement, coords) && p.local_uses.front() == 0;
    };
    const double norm = global_grad_norm(store, kOrder, counts, world);
    const std::lock_guard<std::mutex> lock(mutex);
    norms.push_back(norm);
  });
  EXPECT_EQ(norms.size(), static_cast<size_t>(mesh.num_ranks()));
  for (const double norm : norms) EXPECT_EQ(norm, norms[0]) << "every rank gets the same";
  return norms[0];
}

TEST(GradNorm, MatchesBruteForceOnEveryMesh) {
  const double expected = brute_force_norm();
  for (const Layout& layout : {Layout{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {3, 1}, {4, 1}, {4, 2}, {2, 3}, {1, 6}}) {
    const std::string name = cat("pipe ", layout.pipe, ", tensor ", layout.tensor);
    EXPECT_NEAR(norm_on<double>(layout), expected, 1e-12 * expected) << name;
    EXPECT_NEAR(norm_on<float>(layout), expected, 1e-6 * expected) << name;
  }
}

TEST(GradNorm, PipeSizeDoesNotChangeABit) {
  for (const int tensor : {1, 2, 3}) {
    const double one = norm_on<float>({1, tensor});
    for (const int pipe : {2, 3, 4}) EXPECT_EQ(norm_on<float>({pipe, tensor}), one) << pipe << " x " << tensor;
  }
}

TEST(GradNorm, ThreadsDoNotChangeABit) {
  param::ParamStore store({{"b", {{"w", mesh::replicated({500, 300})}}}}, Reduction::Fast, at::kFloat, 1);
  fill<float>(store);
  std::vector<double> norms;
  const int before = at::get_num_threads();
  run_ranks(1, [&](Communicator& world) {
    for (const int num_threads : {1, 2, 3}) {
      at::set_num_threads(num_threads);
      norms.push_back(global_grad_norm(
          store, {"w"}, [](const param::Parameter&) { return true; }, world));
    }
  });
  at::set_num_threads(before);
  EXPECT_EQ(norms, std::vector<double>(3, norms[0]));
  EXPECT_GT(norms[0], 0);
}

TEST(GradNorm, AParameterOutsideTheOrderFails) {
  param::ParamStore store({{"b", {{"w", mesh::replicated({5})}}}}, Reduction::Fast, at::kFloat, 1);
  run_ranks(1, [&](Communicator& world) {
    const auto all = [](const param::Parameter&) { return true; };
    EXPECT_THROW(global_grad_norm(store, {"v"}, all, world), InternalError);
    EXPECT_THROW(global_grad_norm(store, {"w", "w"}, all, world), InternalError);
    EXPECT_EQ(global_grad_norm(
                  store, {"v"}, [](const param::Parameter&) { return false; }, world),
              0);
  });
}

}  // namespace
}  // namespace braid::optim::grad_norm_test
