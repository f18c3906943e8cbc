// The states of all parameters are one tensor for each name ("exp_avg"). For each part of it the optimizer is given
// views of the parameters, gradients and states there, in place of its own.
#include "braid/module/optimizer_on_disk.h"

#include <ATen/TensorIterator.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "braid/base/errors.h"
#include "braid/module/lent_optimizer.h"
#include "braid/module/state_places.h"
#include "braid/module/torch_state.h"
#include "braid/optim/chunked_pass.h"
#include "braid/param/disk_tensors.h"
#include "braid/param/flat_data.h"

namespace braid {
namespace {

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

param::DiskSpace space_of(const OptimizerOnDisk::Options& options, size_t num_states) {
  param::DiskSpace space;
  space.place.folders = options.folders;
  space.place.key = "folders";
  space.place.checksums = disk::Checksums::On;
  space.place.depth = kChunksInMemory * static_cast<int>(num_states);
  space.chunk_bytes = options.chunk_bytes;
  return space;
}

}  // namespace

class OptimizerOnDisk::State {
 public:
  State(Optimizer& optimizer, const Options& options)
      : optimizer_(optimizer), places_(modules::places_of(optimizer)), names_(checked_states(options)) {
    disk_ = std::make_shared<param::DiskTensors>(space_of(options, names_.size()), std::ssize(names_) * state_bytes());
    const at::ScalarType type = places_[0].parameter.scalar_type();
    const auto slice_bytes = static_cast<int64_t>(c10::elementSize(type)) * param::kSliceAlign;
    std::vector<optim::PassTensor> tensors;
    for (size_t i = 0; i < names_.size(); ++i) {
      states_.push_back(disk_->zeros(length(), type, param::MemoryCategory::Optimizer));
      tensors.push_back({states_.back(), optim::Access::Update, slice_bytes});
    }
    pass_.emplace(*disk_, length(), std::move(tensors));
    if (modules::counts_steps(optimizer)) add_zeros();
  }

  void step() {
    if (failed_) throw RunError("an update of the optimizer's states on disk has failed: they are not to be used");
    require_unchanged();
    const c10::AutoGradMode no_grad(false);
    under_way_.clear();
    for (const StatePlace& place : places_) under_way_.push_back(under_way(place));
    const auto is_updated = [](const UnderWay& parameter) { return parameter.gradient.defined(); };
    if (std::ranges::none_of(under_way_, is_updated)) return;
    try {
      pass();
    } catch (...) {
      failed_ = true;
      optimizer_.state().clear();  // some are updated, so they must not be saved
      throw;
    }
    for (size_t i = 0; i < places_.size(); ++i) {
      const std::optional<TorchState>& after = under_way_[i].after;
      if (after && !after->numbers.empty()) set_state(places_[i], *after);
    }
    under_way_.clear();
  }

  const disk::Disk& disk() const { return disk_->disk(); }

 private:
  void pass() {
    disk_->begin_checks();
    LentOptimizer lent(optimizer_);
    pass_->begin(optim::PassMode::InPlace, [&](const optim::Chunk& chunk) {
      for (int64_t begin = chunk.begin; begin < chunk.end; begin += kPartElements) {
        update(lent, chunk, begin, std::min(begin + kPartElements, chunk.end));
      }
    });
    pass_->finish();
  }

  // A parameter in a step.
  struct UnderWay {
    at::Tensor parameter, gradient;           // 1-D; no gradient: it is not updated
    std::optional<TorchState> before, after;  // none: the optimizer has no state of it
    std::set<std::string> on_disk;            // names of the state before that are at their place on the disk
  };
  // A part of a parameter that is given to the optimizer, and its part of each state in the chunk.
  struct Piece {
    size_t place = 0;
    at::Tensor parameter;
    std::vector<at::Tensor> states;
  };

  std::vector<std::string> checked_states(const Options& options) const {
    const std::vector<std::string> names = modules::names_of_kept(optimizer_);
    auto problems = modules::problems_of(places_, optimizer_);
    disk::Options place = space_of(options, names.size()).place;
    place.bytes = std::ssize(names) * state_bytes();
    for (Problem& problem : disk::problems(place)) problems.push_back(std::move(problem));
    if (!problems.empty()) throw ConfigError(std::move(problems));
    return names;
  }
  // Return the elements of a state, and its bytes on disk.
  int64_t length() const { return modules::num_elements(places_); }
  int64_t state_bytes() const {
    return places_.empty() ? 0
                           : (length() * places_[0].parameter.element_size() + disk::kBlockBytes - 1) /
                                 disk::kBlockBytes * disk::kBlockBytes;
  }

  void require_unchanged() const {
    const std::vector<StatePlace> places = modules::places_of(optimizer_);
    const auto same = [](const StatePlace& a, const StatePlace& b) {
      return a.parameter.is_same(b.parameter) && a.group == b.group && a.begin == b.begin && a.type == b.type;
    };
    if (std::ranges::equal(places, places_, same) && modules::names_of_kept(optimizer_) == names_) return;
    throw ConfigError(
        {{"optimizer", "",
          "must have the parameters, their types and sizes, and the states (amsgrad, momentum) that it had "
          "when they moved to disk",
          ""}});
  }

  // Returns the part of state `name` that a parameter has, in the parameter's shape.
  at::Tensor state_on_disk(size_t name, const StatePlace& place) const {
    const at::Tensor& parameter = place.parameter;
    return states_[name].as_strided(parameter.sizes(), parameter.strides(), place.begin);
  }
  void set_state(const StatePlace& place, TorchState state) {
    for (size_t i = 0; i < names_.size(); ++i) {
      if (state.numbers.contains(names_[i])) state.numbers[names_[i]] = state_on_disk(i, place);
    }
    optimizer_.state()[place.parameter.unsafeGetTensorImpl()] = modules::made_state(optimizer_, state);
  }
  // The states with which Adam begins, for a load() before the first step.
  void add_zeros() {
    for (const StatePlace& place : places_) {
      if (!place.parameter.requires_grad() || modules::find_state(optimizer_, place.parameter)) continue;
      TorchState zeros{{}, 0};
      for (const std::string& name : names_) {
        if (name != "max_exp_avg_sq" || modules::is_amsgrad(optimizer_, place.parameter)) zeros.numbers[name];
      }
      set_state(place, std::move(zeros));
    }
  }

  UnderWay under_way(const StatePlace& place) const {
    const at::Tensor& parameter = place.parameter;
    UnderWay made{.parameter = ordered_as(parameter, parameter), .before = modules::find_state(optimizer_, parameter)};
    if (parameter.grad().defined()) made.gradient = ordered_as(parameter, parameter.grad());
    made.after = made.before;
    if (!made.before) return made;
    for (auto& [name, numbers] : made.before->numbers) {
      const bool in_place = is_in_place(name, numbers, place);
      if (in_place) made.on_disk.insert(name);
      numbers = ordered_as(parameter, numbers);
      // The pass writes the disk before it comes to other places.
      if (!in_place && disk_->has(numbers)) numbers = numbers.clone();
    }
    return made;
  }
  // Returns true if the elements of a state are those at its place on the disk, in the parameter's order. They are not
  // if the program has replaced the state, or if set_data() has changed the parameter's strides.
  bool is_in_place(const std::string& name, const at::Tensor& numbers, const StatePlace& place) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end() || !disk_->has(numbers)) return false;
    const at::Tensor own = state_on_disk(static_cast<size_t>(found - names_.begin()), place);
    return own.const_data_ptr() == numbers.const_data_ptr() && own.strides() == numbers.strides();
  }

  // Updates elements [begin, end) of a chunk.
  void update(LentOptimizer& lent, const optim::Chunk& chunk, int64_t begin, int64_t end) {
    const std::vector<Piece> pieces = pieces_in(chunk, begin, end);
    for (const Piece& piece : pieces) {
      lent.give(places_[piece.place].group, piece.parameter);
      if (const auto& before = under_way_[piece.place].before) {
        optimizer_.state()[piece.parameter.unsafeGetTensorImpl()] =
            modules::made_state(optimizer_, in_chunk(piece, *before));
      }
    }
    optimizer_.step();
    for (const Piece& piece : pieces) keep(piece);
    lent.take_back();
  }
  std::vector<Piece> pieces_in(const optim::Chunk& chunk, int64_t begin, int64_t end) const {
    const auto first = std::ranges::upper_bound(places_, begin, {}, &StatePlace::end);
    std::vector<Piece> pieces;
    for (auto place = first; place != places_.end() && place->begin < end; ++place) {
      const int64_t from = std::max(begin, place->begin), to = std::min(end, place->end());
      if (from >= to) continue;
      Piece piece{.place = static_cast<size_t>(place - places_.begin())};
      const UnderWay& whole = under_way_[piece.place];
      const auto part = [&](const at::Tensor& flat) { return flat.narrow(0, from - place->begin, to - from); };
      piece.parameter = part(whole.parameter);
      if (whole.gradient.defined()) piece.parameter.mutable_grad() = part(whole.gradient);
      for (std::byte* const memory : chunk.memory) {
        void* const at = memory + (from - chunk.begin) * piece.parameter.element_size();
        piece.states.push_back(at::from_blob(at, {to - from}, piece.parameter.options()));
      }
      pieces.push_back(std::move(piece));
    }
    return pieces;
  }
  // Returns the piece's part of a parameter's state. A state that is not on disk yet is copied into the chunk.
  TorchState in_chunk(const Piece& piece, const TorchState& whole) const {
    const UnderWay& parameter = under_way_[piece.place];
    TorchState state{{}, whole.steps};
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto found = whole.numbers.find(names_[i]);
      if (found == whole.numbers.end()) continue;
      state.numbers[names_[i]] = piece.states[i];
      if (parameter.on_disk.contains(names_[i])) continue;
      const int64_t at = piece.parameter.storage_offset() - parameter.parameter.storage_offset();
      piece.states[i].copy_(found->second.narrow(0, at, piece.states[i].numel()));
    }
    return state;
  }
  // Takes the state that the optimizer has of a piece after its update. A first update may have made it.
  void keep(const Piece& piece) {
    const std::optional<TorchState> after = modules::find_state(optimizer_, piece.parameter);
    if (!after) return;
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto found = after->numbers.find(names_[i]);
      if (found != after->numbers.end() && !found->second.is_alias_of(piece.states[i]))
        piece.states[i].copy_(found->second);
    }
    under_way_[piece.place].after = *after;
  }

  Optimizer& optimizer_;
  const std::vector<StatePlace> places_;
  const std::vector<std::string> names_;  // of the states
  std::shared_ptr<param::DiskTensors> disk_;
  std::vector<at::Tensor> states_;  // by name, 1-D, on disk
  std::optional<optim::ChunkedPass> pass_;
  std::vector<UnderWay> under_way_;  // by place, during a step
  bool failed_ = false;              // a step
};

OptimizerOnDisk::OptimizerOnDisk(Optimizer& optimizer, const Options& options)
    : state_(std::make_unique<State>(optimizer, options)) {}
OptimizerOnDisk::~OptimizerOnDisk() = default;

void OptimizerOnDisk::step() { state_->step(); }
int64_t OptimizerOnDisk::bytes_written() const { return state_->disk().bytes_written(); }
int64_t OptimizerOnDisk::bytes_read() const { return state_->disk().bytes_read(); }

}  // namespace braid
