// Parameters whose copies lie on other ranks than their neighbours': on a mesh with an expert axis they train as on one
// rank. No model has such parameters as yet, so gradients are made by hand: of half the squared distance from each
// sample's target.
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/optim/grad_norm.h"
#include "braid/sync/make_replication.h"
#include "braid/train/groups.h"
#include "braid/train/saved_tensors.h"
#include "tests/support/scratch_folder.h"

namespace braid::train::expert_copies_test {
namespace {

constexpr int kSamples = 8;
constexpr double kClip = 0.5;

using Values = std::map<std::string, at::Tensor>;

mesh::Share share(const mesh::DeviceMesh& mesh, const mesh::Coords& at, mesh::Axis axis) {
  return {at[axis], mesh.size(axis), axis};
}

// Rows over the ranks of the expert axis, columns over those of the tensor axis.
mesh::Placement of_experts_in_slices(const mesh::Index& shape, const mesh::DeviceMesh& mesh, const mesh::Coords& at) {
  mesh::Placement placement = mesh::split_dim(shape, 0, shape[0], share(mesh, at, mesh::Axis::Expert));
  const mesh::Placement columns = mesh::split_dim(shape, 1, shape[1], share(mesh, at, mesh::Axis::Tensor));
  placement.local_shape[1] = columns.local_shape[1];
  placement.pieces[0].global.begin[1] = columns.pieces[0].global.begin[1];
  placement.pieces[0].global.end[1] = columns.pieces[0].global.end[1];
  placement.sharded = placement.sharded | columns.sharded;
  return placement;
}

std::vector<layout::BlockSpec> blocks(const mesh::DeviceMesh& mesh, const mesh::Coords& at) {
  const auto spec = [](const std::string& name, mesh::Placement placement) {
    return layout::ParamSpec{name, std::move(placement), {model::Init::Kind::Normal, 1}};
  };
  const mesh::Placement slices = mesh::split_dim({30, 40}, 1, 40, share(mesh, at, mesh::Axis::Tensor));
  const mesh::Placement experts = mesh::split_dim({4, 3}, 0, 4, share(mesh, at, mesh::Axis::Expert));
  return {{"first", {spec("norm", mesh::replicated({5, 1})), spec("wide", slices)}},
          {"experts", {spec("up", of_experts_in_slices({8, 300}, mesh, at)), spec("bias", experts)}},
          {"last", {spec("head", mesh::replicated({7, 3}))}}};
}

optim::ParamOrder order() { return {"norm", "wide", "up", "bias", "head"}; }

double target(const std::string& name, int64_t element, int sample) {
  return std::sin(0.1 * static_cast<double>((element + 1) * (sample + 1)) + static_cast<double>(name.size()));
}

// Returns the gradient of the samples in order; the sum is a balanced tree over them.
double gradient(const std::string& name, int64_t element, double value, std::span<const int> samples) {
  if (samples.size() == 1) return value - target(name, element, samples[0]);
  const size_t half = samples.size() / 2;
  return gradient(name, element, value, samples.first(half)) + gradient(name, element, value, samples.subspan(half));
}

class Training {
 public:
  Training(const MeshSpec& mesh, Communicator& world, const SyncSpec& sync = small_buckets())
      : groups_(mesh::DeviceMesh(mesh), StageLayout::single(), world),
        store_(blocks(groups_.mesh, groups_.at), Reduction::Reproducible, at::kDouble, 7),
        replication_(sync::make_replication(sync, groups_.replicas(),
                                            {.store = store_,
                                             .model_part = groups_.at[mesh::Axis::Tensor],
                                             .sum_groups = sum_groups(groups_, store_)})),
        optimizer_(optim::make_optimizer({}, store_)) {}

  void train(int steps, double clip) {
    const c10::AutoGradMode no_grad(false);
    while (steps-- > 0) step(clip);
  }
  std::vector<ckpt::PlacedTensor> tensors() { return saved_tensors(store_, optimizer_->states(), *replication_); }
  void save(const std::string& directory) {
    const ckpt::CheckpointInfo info{optimizer_->num_steps()};
    ckpt::save_checkpoint(directory, {tensors(), info}, groups_.world);
  }
  void load(const std::string& directory) {
    const c10::AutoGradMode no_grad(false);
    ckpt::load_checkpoint(directory, tensors());
    optimizer_->set_num_steps(ckpt::read_checkpoint_info(directory).step);
  }

 private:
  static SyncSpec small_buckets() {
    SyncSpec spec;
    spec.bucket_mb = spec.first_bucket_mb = 0.001;
    return spec;
  }

  // A dense parameter has gradients of the samples of its rank; an expert of those of all ranks that send it tokens.
  std::vector<int> samples_of(const param::Parameter& param) const {
    const mesh::AxisSet own = mesh::summed_axes(param.placement);
    std::vector<int> samples;
    for (int sample = 0; sample < kSamples; ++sample) {
      int place = sample * groups_.mesh.size(mesh::kSampleAxes) / kSamples;
      bool mine = true;
      for (const mesh::Axis axis : {mesh::Axis::Context, mesh::Axis::Expert, mesh::Axis::Data}) {
        mine = mine && (!own.has(axis) || place % groups_.mesh.size(axis) == groups_.at[axis]);
        place /= groups_.mesh.size(axis);
      }
      if (mine) samples.push_back(sample);
    }
    return samples;
  }

  void write_gradient(const param::Parameter& param) const {
    const std::vector<int> samples = samples_of(param);
    const mesh::Piece& piece = param.placement.pieces.at(0);
    const double* values = param.master.const_data_ptr<double>();
    auto* gradients = param.main_grad.mutable_data_ptr<double>();
    int64_t local = 0;
    for (int64_t row = piece.global.begin[0]; row < piece.global.end[0]; ++row) {
      for (int64_t column = piece.global.begin[1]; column < piece.global.end[1]; ++column, ++local) {
        const int64_t element = row * param.placement.global_shape[1] + column;
        gradients[local] = gradient(param.name, element, values[local], samples);
      }
    }
  }

  // Ranks are ready in orders of their own.
  void step(double clip) {
    replication_->begin_step(optimizer_->num_steps());
    const size_t count = store_.params().size();
    for (size_t i = 0; i < count; ++i) {
      const param::Parameter& param = store_.params()[(i + static_cast<size_t>(groups_.world.rank())) % count];
      write_gradient(param);
      replication_->ready(param);
    }
    replication_->finish();
    mesh::Coords in_replica = groups_.at;
    in_replica[mesh::Axis::Data] = 0;
    const auto counts = [&](const param::Parameter& param) { return mesh::counts_once(param.placement, in_replica); };
    const double norm = optim::global_grad_norm(store_, order(), counts, groups_.model());
    EXPECT_GT(norm, kClip);
    optimizer_->step({0.05, optim::clip_scale(norm, clip)});
    replication_->updated();
  }

  Groups groups_;
  param::ParamStore store_;
  std::unique_ptr<sync::Replication> replication_;
  std::unique_ptr<optim::Optimizer> optimizer_;
};

Values copied(const std::vector<ckpt::PlacedTensor>& tensors) {
  Values values;
  for (const ckpt::PlacedTensor& each : tensors) values[each.name] = each.local.detach().clone();
  return values;
}

// Weights and moments, whole.
Values trained_on_one_rank(int steps, double clip) {
  Values values;
  run_ranks(1, [&](Communicator& world) {
    Training serial({}, world);
    serial.train(steps, clip);
    values = copied(serial.tensors());
  });
  return values;
}

Values read(const std::string& directory) {
  Values values;
  run_ranks(1, [&](Communicator& world) {
    Training serial({}, world);
    serial.load(directory);
    values = copied(serial.tensors());
  });
  return values;
}

void expect_near(const Values& got, const Values& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    const double largest = tensor.abs().max().item<double>();
    const double difference = got.at(name).sub(tensor).abs().max().item<double>();
    EXPECT_LE(difference, tolerance * largest) << name;
  }
}

const std::vector<MeshSpec>& meshes() {
  static const std::vector<MeshSpec> kMeshes = {{.data = 2, .expert = 2},
                                                {.data = 2, .expert = 2, .tensor = 2},
                                                {.expert = 4, .tensor = 2},
                                                {.data = 4, .tensor = 2},
                                                {.data = 2, .context = 2, .expert = 2}};
  return kMeshes;
}

std::string drawn(const MeshSpec& mesh) {
  return cat("data ", mesh.data, " x context ", mesh.context, " x expert ", mesh.expert, " x tensor ", mesh.tensor);
}

class ExpertCopies : public ScratchFolder {};

// The sums continue the tree over samples where an expert's tokens are neighbours; norms add an expert's part by
// themselves, so clipping rounds otherwise.
TEST_F(ExpertCopies, TrainAsOnOneRank) {
  constexpr int kSteps = 5;
  for (const double clip : {0.0, kClip}) {
    const Values want = trained_on_one_rank(kSteps, clip);
    for (const MeshSpec& mesh : meshes()) {
      SCOPED_TRACE(cat(drawn(mesh), ", clipped at ", clip));
      run_ranks(mesh::DeviceMesh(mesh).num_ranks(), [&](Communicator& world) {
        Training training(mesh, world);
        training.train(kSteps, clip);
        training.save(path("trained"));
      });
      expect_near(read(path("trained")), want, clip == 0 && mesh.context == 1 ? 0 : 1e-12);
      std::filesystem::remove_all(path("trained"));
    }
  }
}

TEST_F(ExpertCopies, WhatOneMeshSavesEveryOtherGoesOnWith) {
  const Values want = trained_on_one_rank(5, 0);
  run_ranks(8, [&](Communicator& world) {
    Training training({.data = 2, .expert = 2, .tensor = 2}, world);
    training.train(3, 0);
    training.save(path("saved"));
  });
  const Values saved = read(path("saved"));
  for (const MeshSpec& mesh : meshes()) {
    SCOPED_TRACE(drawn(mesh));
    run_ranks(mesh::DeviceMesh(mesh).num_ranks(), [&](Communicator& world) {
      Training training(mesh, world);
      training.load(path("saved"));
      training.save(path("again"));
      training.load(path("again"));
      training.train(2, 0);
      training.save(path("trained"));
    });
    expect_near(read(path("again")), saved, 0);
    expect_near(read(path("trained")), want, mesh.context == 1 ? 0 : 1e-12);
    std::filesystem::remove_all(path("again"));
    std::filesystem::remove_all(path("trained"));
  }
}

// The parts of a matrix have directions of their own, and each of its replicas a residual.
TEST_F(ExpertCopies, WhatCompressionCarriesOverComesBackToItsRank) {
  SyncSpec sync;
  sync.compression = CompressionKind::PowerSgd;
  sync.compression_rank = 1;
  const MeshSpec mesh{.data = 2, .expert = 2, .tensor = 2};
  run_ranks(8, [&](Communicator& world) {
    Training training(mesh, world, sync);
    training.train(3, 0);
    training.save(path("saved"));
    const c10::AutoGradMode no_grad(false);
    const Values before = copied(training.tensors());
    int num_directions = 0;
    for (const ckpt::PlacedTensor& each : training.tensors()) {
      num_directions += each.name.starts_with("reducer.directions/") ? 1 : 0;
      each.local.zero_();
    }
    EXPECT_GT(num_directions, 1);
    training.load(path("saved"));
    for (const auto& [name, tensor] : copied(training.tensors())) {
      EXPECT_TRUE(tensor.equal(before.at(name))) << name << " on rank " << world.rank();
    }
  });
}

TEST(SumGroups, AreOfTheSetsOfAxesThatOccur) {
  run_ranks(8, [&](Communicator& world) {
    const Groups groups(mesh::DeviceMesh({.data = 2, .expert = 2, .tensor = 2}), StageLayout::single(), world);
    EXPECT_EQ(groups.replicas().replicas.size(), 4);
    EXPECT_EQ(groups.model().size(), 4);
    const auto made = [&](const mesh::Placement& placement) {
      const param::ParamStore store(
          {{"b", {{"dense", mesh::replicated({3})}, {"one", placement}, {"other", placement}}}}, Reduction::Fast,
          at::kFloat, 1);
      return sum_groups(groups, store);
    };
    EXPECT_TRUE(made(mesh::split_dim({4}, 0, 4, share(groups.mesh, groups.at, mesh::Axis::Tensor))).empty());
    const auto of_experts = made(mesh::split_dim({4}, 0, 4, share(groups.mesh, groups.at, mesh::Axis::Expert)));
    ASSERT_EQ(of_experts.size(), 1u);
    EXPECT_EQ(of_experts[0].axes, (mesh::AxisSet{mesh::Axis::Data, mesh::Axis::Context}));
    EXPECT_EQ(of_experts[0].ranks->size(), 2);
    EXPECT_EQ(of_experts[0].ranks->rank(), groups.at[mesh::Axis::Data]);
    EXPECT_THROW(made(mesh::split_dim({4}, 0, 4, share(groups.mesh, groups.at, mesh::Axis::Data))), InternalError);
  });
}

}  // namespace
}  // namespace braid::train::expert_copies_test
