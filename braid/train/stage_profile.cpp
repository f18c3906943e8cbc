// Times the pieces of a model of few transformer blocks, one at a time. They represent all blocks of the model.
#include "braid/train/stage_profile.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "braid/base/clock.h"
#include "braid/base/median.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/launch/launcher.h"
#include "braid/layout/parameters.h"
#include "braid/model/families.h"
#include "braid/model/shape.h"
#include "braid/optim/optimizer.h"
#include "braid/param/memory_account.h"
#include "braid/spec/masking.h"
#include "braid/spec/partition.h"
#include "braid/train/compute_device.h"
#include "braid/train/context_ranks.h"
#include "braid/train/rank_model.h"
#include "braid/train/resume.h"
#include "braid/train/step_schedule.h"

namespace braid::plan {

template <class Pack>
void members(Pack& pack, Unit& unit) {
  pack(unit.name, unit.forward, unit.input_grad, unit.weight_grad, unit.activation_bytes, unit.fixed_bytes);
}

}  // namespace braid::plan

namespace braid::train {
namespace {

// Returns the partition of the resumed run. Returns "" if that run had another number of stages or layers, or if the
// checkpoint has no partition.
std::string saved_partition(const RunSpec& spec, int num_stages) {
  if (spec.train.resume.empty()) return "";
  const ckpt::CheckpointInfo info = ckpt::read_checkpoint_info(spec.train.resume);
  if (info.config_toml.empty()) return "";
  const RunSpec saved = saved_spec(info, spec.train.resume);
  const auto blocks = spec::partition_list(saved.pipeline.partition);
  const bool fits = blocks && static_cast<int>(blocks->size()) == num_stages;
  return fits && saved.model.layers == spec.model.layers ? saved.pipeline.partition : "";
}

}  // namespace

plan::Partition best_partition(const RunSpec& spec, std::vector<plan::Unit> units) {
  plan::PartitionRequest request;
  request.units = std::move(units);
  request.holders = plan::holders(step_schedule(spec));
  request.speeds = spec.pipeline.speeds;
  request.limit_bytes = static_cast<int64_t>(std::ceil(std::ldexp(spec.memory.limit_gb, 30)));
  return plan::partition_units(request);
}

std::optional<plan::Partition> resolve_partition(RunSpec& spec, int threads) {
  if (!spec::is_measured(spec.pipeline)) return {};
  const int num_stages = step_schedule(spec).num_stages;
  if (const std::string saved = saved_partition(spec, num_stages); !saved.empty()) {
    spec.pipeline.partition = saved;
    return {};
  }
  const plan::Partition measured = best_partition(spec, profiled_units(spec, threads));
  spec.pipeline.partition = spec::partition_text(spec.model, measured.first_unit);
  return measured;
}

ModelSample::ModelSample(const RunSpec& spec, const layout::ModelParams& params, Communicator& tensor,
                         const nn::ContextGroup& context)
    : spec_(spec),
      options_(at::TensorOptions(scalar_type(spec.train.dtype)).device(compute_device(spec))),
      store_(params, Reduction::Fast, options_, spec.train.seed),
      sink_(param::accumulating_sink(store_)),
      queue_(*sink_),
      recompute_(spec::stage_recompute(spec.memory, 0)),
      rank_{tensor, queue_, nn::kept_by_layers(recompute_), layout::sequence_of(spec.mesh), context} {
  const int64_t b = spec.train.microbatch, t = spec.model.context / spec.mesh.context;
  microbatch_.tokens_bt = at::arange(b * t, at::kLong).mul(7919).remainder(spec.model.vocab).view({b, t});
  const int64_t picked = spec::num_picked(spec);
  const bool picks = picked < spec.model.context;
  const at::Tensor rows_j = at::arange(picks ? picked : t, at::kLong).remainder(t);
  microbatch_.targets_bt = microbatch_.tokens_bt.index_select(1, rows_j);
  if (picks) microbatch_.rows_bj = rows_j.expand({b, picked}).contiguous();
  microbatch_ = placed_on(compute_device(spec), microbatch_, spec.model.vocab);
  x_btc_ = at::full(hidden_sizes(spec), 0.5, options_);
}

ModelSample::Piece::Piece(ModelSample& sample, const nn::ModelPiece& piece)
    : sample_(sample), has_input_(piece.block > 0) {
  const bool head = piece.block == sample.spec_.model.layers + 1;
  blocks_.push_back(nn::model_block(sample.spec_.model, piece, sample.store_, sample.rank_));
  segments_ = std::make_unique<nn::Segments>(
      blocks_, nn::plan_segments(sample.recompute_, {0, head ? 0 : 1, head ? 1 : 0}), sample.queue_);
}

PassTimes ModelSample::Piece::run(int64_t* kept) const {
  sample_.sink_->begin_step(1);
  nn::Passage passage(sample_.microbatch_);
  const param::MemoryScope scope(param::MemoryCategory::Activations);
  const int64_t before = kept ? sample_.kept_bytes() : 0;
  const double start = sample_.now();
  const at::Tensor y = segments_->forward(has_input_ ? sample_.x_btc_ : at::Tensor(), passage).detach();
  const double forward = sample_.now();
  if (kept) *kept = sample_.kept_bytes() - before;
  at::Tensor dy = at::ones_like(y);
  const double backward = sample_.now();
  segments_->backward(std::move(passage), std::move(dy), nn::WeightPass::Later);
  const double input_grad = sample_.now();
  sample_.queue_.run(0);
  return {forward - start, input_grad - backward, sample_.now() - input_grad};
}

// Waits for the device and returns the clock's time.
double ModelSample::now() const {
  if (!x_btc_.is_cpu()) at::zeros({1}, x_btc_.options()).item();
  return now_seconds();
}

int64_t ModelSample::kept_bytes() const {
  return param::memory_use(param::accounted_rank().value_or(0))
      .bytes[static_cast<size_t>(param::MemoryCategory::Activations)];
}

namespace {

constexpr int kWarmUps = 2, kRuns = 5;

// Times one rank's pieces, on parameters of their own.
class Profile {
 public:
  Profile(const RunSpec& spec, Communicator& ranks)
      : spec_(spec),
        tensor_(ranks.split(ranks.rank() / spec.mesh.tensor, ranks.rank(), "tensor")),
        context_ranks_(ranks.split(ranks.rank() % spec.mesh.tensor, ranks.rank(), "context")),
        context_(spec, *context_ranks_),
        params_(layout::model_params(spec.model, tensor_->rank(), tensor_->size())),
        sample_(spec, params_, *tensor_, context_.group()) {}

  plan::Unit measured(const nn::ModelPiece& piece) {
    const ModelSample::Piece sample = sample_.piece(piece);
    std::vector<double> forward, input_grad, weight_grad;
    plan::Unit unit;
    for (int run = 0; run < kWarmUps + kRuns; ++run) {
      const PassTimes seconds = sample.run(&unit.activation_bytes);
      if (run < kWarmUps) continue;
      forward.push_back(seconds.forward);
      input_grad.push_back(seconds.input_grad);
      weight_grad.push_back(seconds.weight_grad);
    }
    unit.forward = median(forward), unit.input_grad = median(input_grad), unit.weight_grad = median(weight_grad);
    for (const layout::ParamSpec& param : nn::params_of(piece, params_).params) unit.fixed_bytes += bytes_of(param);
    return unit;
  }

 private:
  // Returns the bytes of a parameter: its data, and the following in the type of the masters: the gradient, the partial
  // sums of a reproducible step and, unless it is on disk, the master if its type is not that of the data. Adds the
  // optimizer's states, unless they are on disk, and snapshot_bytes().
  int64_t bytes_of(const layout::ParamSpec& param) const {
    const auto data = static_cast<int64_t>(sample_.store().flat_data().element_size());
    const auto master = static_cast<int64_t>(sample_.store().flat_master().element_size());
    const int64_t elements = mesh::num_elements(param.placement.local_shape), states = state_bytes(param, elements);
    const bool resident = is_resident(spec_.memory.optimizer);
    int64_t num_masters = 1;
    if (resident && data != master) ++num_masters;
    if (spec_.train.reduction == Reduction::Reproducible) {
      const int per_rank = spec_.train.batch / (spec_.train.microbatch * spec_.mesh.data);
      num_masters += std::bit_width(static_cast<unsigned>(per_rank)) - 1;
    }
    const int64_t masters = elements * master;
    return elements * data + num_masters * masters + (resident ? states : 0) + snapshot_bytes(masters + states);
  }

  int64_t state_bytes(const layout::ParamSpec& param, int64_t elements) const {
    const auto of_master = static_cast<double>(sample_.store().flat_master().element_size());
    const double of_state = state_element_bytes(spec_.optimizer.state_dtype, of_master);
    return std::llround(optim::num_states(spec_.optimizer, param.linear) * of_state * static_cast<double>(elements));
  }

  // Returns the bytes of masters and states that are copied on the host for a save, sharded across its copies.
  int64_t snapshot_bytes(int64_t masters_and_states) const {
    if (!spec_.checkpoint.async || !sample_.store().flat_data().is_cpu()) return 0;
    return masters_and_states / (spec_.mesh.data * spec_.mesh.context);
  }

  const RunSpec& spec_;
  const std::unique_ptr<Communicator> tensor_, context_ranks_;
  const ContextRanks context_;
  const layout::ModelParams params_;
  ModelSample sample_;
};

// Returns the first layer of each kind, by its number among the blocks.
std::vector<int> first_layers(const model::ModelGraph& graph) {
  const std::vector<size_t> first = graph.first_blocks();
  return std::vector<int>(first.begin() + 1, first.end() - 1);
}

// Returns the parts of a block, with the whole block's time divided in proportion to the times of its parts.
std::vector<plan::Unit> measured_parts(Profile& profile, const ModelSpec& model, int block) {
  const plan::Unit whole = profile.measured({block});
  std::vector<plan::Unit> parts;
  for (int part = 0; part < model::parts_of_layer(model); ++part) {
    parts.push_back(profile.measured({block, part, part + 1}));
  }
  for (const auto seconds : {&plan::Unit::forward, &plan::Unit::input_grad, &plan::Unit::weight_grad}) {
    double sum = 0;
    for (const plan::Unit& part : parts) sum += part.*seconds;
    for (plan::Unit& part : parts) part.*seconds *= sum > 0 ? whole.*seconds / sum : 1;
  }
  return parts;
}

// Measures the units of a model on `sample`, whose first layers are the model's and have all kinds.
std::vector<plan::Unit> measured_units(const RunSpec& sample, const ModelSpec& model, Communicator& ranks) {
  const model::ModelGraph graph = model::graph_of(model);
  Profile profile(sample, ranks);
  std::vector<plan::Unit> units{profile.measured({0})};
  units.back().name = "embedding";
  const plan::Unit head = profile.measured({sample.model.layers + 1});
  std::vector<std::vector<plan::Unit>> of_kind;
  for (const int block : first_layers(graph)) of_kind.push_back(measured_parts(profile, model, block));
  for (int layer = 0; layer < model.layers; ++layer) {
    const std::vector<plan::Unit>& parts = of_kind[graph.blocks[layer + 1] - 1];
    for (size_t part = 0; part < parts.size(); ++part) {
      units.push_back(parts[part]);
      units.back().name = cat("blocks.", layer, ".", model::part_name(graph.block(layer + 1), part));
    }
  }
  units.push_back(head);
  units.back().name = "head";
  return units;
}

}  // namespace

std::vector<plan::Unit> profiled_units(const RunSpec& spec, int threads) {
  RunSpec sample = spec;
  sample.model.layers = first_layers(model::graph_of(spec.model)).back();
  const auto measured = [&](Communicator& ranks) {
    param::account_memory_to(ranks.rank());
    enter_device(spec);
    return measured_units(sample, spec.model, ranks);
  };
  return values_by_rank(launcher(spec.run), spec.mesh.context * spec.mesh.tensor, measured,
                        {.threads_per_rank = threads, .signals = SignalsTo::Caller})[0];
}

}  // namespace braid::train
