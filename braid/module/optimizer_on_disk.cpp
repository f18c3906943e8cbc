// For each part of a chunk the optimizer is given views of the parameters, gradients and states there, in place of its
// own.
#include "braid/module/optimizer_on_disk.h"

#include <ATen/TensorIterator.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/module/disk_states.h"
#include "braid/module/lent_optimizer.h"
#include "braid/optim/chunked_pass.h"
#include "braid/param/flat_data.h"

namespace braid {
namespace {

using modules::DiskStates;
using modules::LentOptimizer;
using modules::StatePlace;
using modules::TorchState;
using torch::optim::Optimizer;

// Elements that the optimizer updates at once: so few that torch gives them to one thread, and that they stay in a
// core's cache.
constexpr int64_t kPartElements = at::internal::GRAIN_SIZE;

// Returns the elements of a tensor, 1-D, in the order in which the memory of `parameter` has its own.
at::Tensor ordered_as(const at::Tensor& parameter, const at::Tensor& tensor) {
  check(tensor.sizes() == parameter.sizes(), "a gradient and a state have the shape of their parameter");
  check(parameter.is_non_overlapping_and_dense(), "a parameter has no gaps between its elements");
  const bool same = tensor.strides() == parameter.strides();
  const at::Tensor ordered = same ? tensor.detach() : at::empty_like(parameter.detach()).copy_(tensor);
  return ordered.as_strided({ordered.numel()}, {1});
}

}  // namespace

class OptimizerOnDisk::State {
 public:
  State(Optimizer& optimizer, const Options& options) : optimizer_(optimizer), states_(optimizer, options) {}

  void step(const Model& model) {
    if (failed_) throw RunError("an update of the optimizer's states on disk has failed: they are not to be used");
    states_.require_unchanged();
    require_model(model);
    const c10::AutoGradMode no_grad(false);
    make_pass(model);
    under_way_.clear();
    for (const StatePlace& place : states_.places()) under_way_.push_back(under_way(place));
    const auto is_updated = [](const UnderWay& parameter) { return parameter.gradient.defined(); };
    if (std::ranges::none_of(under_way_, is_updated)) return;
    try {
      pass(model);
    } catch (...) {
      failed_ = true;
      optimizer_.state().clear();  // some are updated, so they must not be saved
      throw;
    }
    for (size_t i = 0; i < under_way_.size(); ++i) {
      const std::optional<TorchState>& after = under_way_[i].after;
      if (after && !after->numbers.empty()) states_.set(states_.places()[i], *after);
    }
    under_way_.clear();
  }

  const disk::Disk& disk() const { return states_.disk().disk(); }

 private:
  // A parameter in a step.
  struct UnderWay {
    at::Tensor parameter, gradient;           // 1-D; no gradient: it is not updated
    std::optional<TorchState> before, after;  // none: the optimizer has no state of it
    std::set<std::string> on_disk;            // names of the state before that are at their place on the disk
  };
  // A part of a parameter that is given to the optimizer, and its part of each state in the chunk.
  struct Piece {
    size_t place = 0;
    int64_t begin = 0;  // element of the parameter
    at::Tensor parameter;
    std::vector<at::Tensor> states;
  };
  using TensorOf = std::function<at::Tensor(const StatePlace& place)>;

  void require_model(const Model& model) const {
    modules::require_parameters_of(model.parameters, optimizer_);
    const auto is_elsewhere = [&](const StatePlace& place) {
      const at::Tensor &parameter = place.parameter, &gradient = parameter.grad();
      const auto is_strange = [&](const at::Tensor& tensor) {
        return tensor.defined() && param::DiskTensors::any_has(tensor) && !(model.disk && model.disk->has(tensor));
      };
      return is_strange(parameter) || is_strange(gradient);
    };
    if (std::ranges::none_of(states_.places(), is_elsewhere)) return;
    throw ConfigError({{"step", "of parameters or gradients on disk",
                        "must be step(OptimizerOnDisk&) or update(OptimizerOnDisk&) of the model that has them", ""}});
  }

  // Makes the pass over the states and what the model has on disk: first for a step, then if that has changed.
  void make_pass(const Model& model) {
    const auto parameter = [](const StatePlace& place) { return place.parameter; };
    const auto gradient = [](const StatePlace& place) { return place.parameter.grad(); };
    const at::Tensor parameters = tensor_on(model.disk, "parameters", parameter);
    const at::Tensor gradients = tensor_on(model.disk, "gradients", gradient);
    const bool same = model.disk == model_disk_ && parameters.defined() == parameters_at_.has_value() &&
                      gradients.defined() == gradients_at_.has_value();
    if (pass_ && same) return;
    const auto slice_bytes = static_cast<int64_t>(c10::elementSize(states_.places()[0].type)) * param::kSliceAlign;
    std::vector<optim::PassTensor> tensors;
    for (const at::Tensor& state : states_.tensors()) tensors.push_back({state, optim::Access::Update, slice_bytes});
    const auto add = [&](const at::Tensor& flat, optim::Access access) -> std::optional<size_t> {
      if (!flat.defined()) return std::nullopt;
      tensors.push_back({.flat = flat, .access = access, .slice_bytes = slice_bytes, .disk = model.disk});
      return tensors.size() - 1;
    };
    parameters_at_ = add(parameters, optim::Access::Update);
    gradients_at_ = add(gradients, optim::Access::Read);
    model_disk_ = model.disk;
    pass_.emplace(states_.disk(), states_.num_elements(), std::move(tensors));
  }

  // Returns a tensor that begins with the elements of all places, if they are on `disk`. Throws ConfigError if they are
  // there in another order than the states, or only some of them are.
  at::Tensor tensor_on(const param::DiskTensors* disk, const char* what, const TensorOf& of) const {
    const std::vector<StatePlace>& places = states_.places();
    const auto is_on_disk = [&](const StatePlace& place) {
      const at::Tensor tensor = of(place);
      return disk && tensor.defined() && disk->has(tensor);
    };
    if (std::ranges::none_of(places, is_on_disk)) return {};
    const at::Tensor first = of(places[0]);
    const auto is_in_order = [&](const StatePlace& place) {
      return is_on_disk(place) &&
             disk->offset(of(place)) == disk->offset(first) + place.begin * place.parameter.element_size();
    };
    if (is_on_disk(places[0]) && std::ranges::all_of(places, is_in_order)) return first;
    throw ConfigError(
        {{"optimizer", "",
          cat("must have all of the model's parameters(), or some that follow each other, in their order, because ",
              what, " are on disk"),
          ""}});
  }

  void pass(const Model& model) {
    states_.disk().begin_checks();
    LentOptimizer lent(optimizer_);
    pass_->begin(optim::PassMode::InPlace, [&](const optim::Chunk& chunk) {
      for (int64_t begin = chunk.begin; begin < chunk.end; begin += kPartElements) {
        update(lent, pieces_in(chunk, begin, std::min(begin + kPartElements, chunk.end), model));
      }
    });
    pass_->finish();
  }

  UnderWay under_way(const StatePlace& place) const {
    const at::Tensor& parameter = place.parameter;
    UnderWay made{.parameter = ordered_as(parameter, parameter), .before = modules::find_state(optimizer_, parameter)};
    if (parameter.grad().defined()) made.gradient = ordered_as(parameter, parameter.grad());
    made.after = made.before;
    if (!made.before) return made;
    for (auto& [name, numbers] : made.before->numbers) {
      const bool in_place = states_.is_in_place(name, numbers, place);
      if (in_place) made.on_disk.insert(name);
      numbers = ordered_as(parameter, numbers);
      // The pass writes the disk before it comes to other places.
      if (!in_place && states_.disk().has(numbers)) numbers = numbers.clone();
    }
    return made;
  }

  void update(LentOptimizer& lent, const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      lent.give(states_.places()[piece.place].group, piece.parameter);
      if (const auto& before = under_way_[piece.place].before) {
        optimizer_.state()[piece.parameter.unsafeGetTensorImpl()] =
            modules::made_state(optimizer_, in_chunk(piece, *before));
      }
    }
    optimizer_.step();
    for (const Piece& piece : pieces) keep(piece);
    lent.take_back();
  }
  // Returns the pieces in elements [begin, end) of a chunk.
  std::vector<Piece> pieces_in(const optim::Chunk& chunk, int64_t begin, int64_t end, const Model& model) const {
    const std::vector<StatePlace>& places = states_.places();
    std::vector<Piece> pieces;
    for (auto place = std::ranges::upper_bound(places, begin, {}, &StatePlace::end);
         place != places.end() && place->begin < end; ++place) {
      const int64_t from = std::max(begin, place->begin), to = std::min(end, place->end());
      if (from >= to) continue;
      const auto number = static_cast<size_t>(place - places.begin());
      const UnderWay& whole = under_way_[number];
      const auto in_chunk = [&](size_t tensor) {
        const int64_t at = (from - chunk.begin) * whole.parameter.element_size();
        return at::from_blob(chunk.memory[tensor] + at, {to - from}, whole.parameter.options());
      };
      const auto part = [&](const at::Tensor& flat, std::optional<size_t> tensor) {
        return tensor ? in_chunk(*tensor) : flat.narrow(0, from - place->begin, to - from);
      };
      Piece piece{.place = number, .begin = from - place->begin, .parameter = part(whole.parameter, parameters_at_)};
      if (whole.gradient.defined()) {
        const at::Tensor gradient = part(whole.gradient, gradients_at_);
        for (size_t i = 0; gradients_at_ && i < model.gradient_factors.size(); ++i) {
          gradient.mul_(model.gradient_factors[i]);
        }
        piece.parameter.mutable_grad() = gradient;
      }
      for (size_t i = 0; i < states_.names().size(); ++i) piece.states.push_back(in_chunk(i));
      pieces.push_back(std::move(piece));
    }
    return pieces;
  }
  // Returns the piece's part of a parameter's state. A state that is not on disk yet is copied into the chunk.
  TorchState in_chunk(const Piece& piece, const TorchState& whole) const {
    const UnderWay& parameter = under_way_[piece.place];
    TorchState state{{}, whole.steps};
    for (size_t i = 0; i < piece.states.size(); ++i) {
      const std::string& name = states_.names()[i];
      const auto found = whole.numbers.find(name);
      if (found == whole.numbers.end()) continue;
      state.numbers[name] = piece.states[i];
      if (parameter.on_disk.contains(name)) continue;
      piece.states[i].copy_(found->second.narrow(0, piece.begin, piece.states[i].numel()));
    }
    return state;
  }
  // Takes the state that the optimizer has of a piece after its update. A first update may have made it.
  void keep(const Piece& piece) {
    const std::optional<TorchState> after = modules::find_state(optimizer_, piece.parameter);
    if (!after) return;
    for (size_t i = 0; i < piece.states.size(); ++i) {
      const auto found = after->numbers.find(states_.names()[i]);
      if (found != after->numbers.end() && !found->second.is_alias_of(piece.states[i]))
        piece.states[i].copy_(found->second);
    }
    under_way_[piece.place].after = *after;
  }

  Optimizer& optimizer_;
  const DiskStates states_;
  std::optional<optim::ChunkedPass> pass_;
  const param::DiskTensors* model_disk_ = nullptr;      // of the pass
  std::optional<size_t> parameters_at_, gradients_at_;  // tensors of the pass; none: in memory
  std::vector<UnderWay> under_way_;                     // by place, during a step
  bool failed_ = false;                                 // a step
};

OptimizerOnDisk::OptimizerOnDisk(Optimizer& optimizer, const Options& options)
    : state_(std::make_unique<State>(optimizer, options)) {}
OptimizerOnDisk::~OptimizerOnDisk() = default;

void OptimizerOnDisk::step() { state_->step({}); }
void OptimizerOnDisk::step_of(const Model& model) { state_->step(model); }
int64_t OptimizerOnDisk::bytes_written() const { return state_->disk().bytes_written(); }
int64_t OptimizerOnDisk::bytes_read() const { return state_->disk().bytes_read(); }

}  // namespace braid
