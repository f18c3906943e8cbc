// Muon's update of one matrix at a time: elementwise on this rank's shard, then on the whole matrix, then elementwise
// on the shard again.
#include "braid/optim/muon.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/op_name.h"
#include "braid/mesh/flat_range.h"
#include "braid/param/memory_account.h"

namespace braid::optim {
namespace {

bool is_whole(const param::Parameter& param) { return param.linear == model::LinearMap::Yes; }

ElementRule rest_rule(OptimizerSpec spec) {
  spec.kind = OptimizerKind::AdamW;
  return element_rule(spec);
}

// Returns the view of `tensor` that starts at `begin` and has the extents of `box`.
at::Tensor box_at(at::Tensor tensor, const mesh::Index& begin, const mesh::Box& box) {
  for (size_t dim = 0; dim < begin.size(); ++dim) {
    tensor = tensor.narrow(static_cast<int64_t>(dim), begin[dim], box.end[dim] - box.begin[dim]);
  }
  return tensor;
}

// Calls `call` for each box with two views of the same elements. The first is of `global`, a whole matrix. The second
// is of `flat`, which is elements [begin, end) of the rank's local part of that matrix.
template <class Call>
void for_each_box(const mesh::Placement& placement, int64_t begin, int64_t end, const at::Tensor& global,
                  const at::Tensor& flat, const Call& call) {
  for (const mesh::Fragment& fragment : mesh::fragments(placement, begin, end)) {
    const mesh::Index& shape = fragment.placement.local_shape;
    const at::Tensor local = flat.narrow(0, fragment.begin - begin, mesh::num_elements(shape)).view(shape);
    for (const mesh::Piece& piece : fragment.placement.pieces) {
      call(box_at(global, piece.global.begin, piece.global), box_at(local, piece.local_begin, piece.global));
    }
  }
}

}  // namespace

at::Tensor orthogonalized(const at::Tensor& matrix) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;  // coefficients with the largest slope at zero
  constexpr int kSteps = 5;
  const bool tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = tall ? matrix.t() : matrix;
  x = x / (x.norm() + 1e-7);  // no singular value exceeds 1 now
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor square = at::mm(x, x.t());
    const at::Tensor polynomial = at::addmm(square, square, square, kB, kC);
    x = at::addmm(x, polynomial, x, kA, 1);
  }
  return tall ? x.t() : x;
}

Muon::Muon(const OptimizerSpec& spec, param::ParamStore& store, Communicator* shards, Communicator* tensor)
    : Optimizer(store),
      momentum_(spec.momentum),
      shards_(shards),
      tensor_(tensor),
      rates_(spec, store),
      rest_(rest_rule(spec), rates_, store, [](const param::Parameter& param) { return !is_whole(param); }),
      stretches_(owned_stretches(store, is_whole)) {
  const bool split = store.sharding().parts > 1;
  check(!split || (shards && shards->size() == store.sharding().parts),
        "sharded matrices are brought together over those ranks");
}

std::vector<OptimizerState> Muon::zero_states() const {
  std::vector<OptimizerState> states = rest_.zero_states();
  states.insert(states.begin(), zeros_of("muon.momentum", stretches_, store_, store_.flat_master().scalar_type()));
  return states;
}

void Muon::update(const OptimizerStep& step) {
  const c10::AutoGradMode no_grad(false);
  const param::MemoryScope scope(param::MemoryCategory::Optimizer);
  for (const param::Parameter& param : store_.params()) {
    if (is_whole(param)) update_matrix(param, step);
  }
  rest_.run(step, num_steps(), std::span(states()).subspan(1));
}

std::vector<Muon::OwnPart> Muon::own_parts(const param::Parameter& param) {
  std::vector<OwnPart> parts;
  const OptimizerState& momentum = states().front();
  for (const StateStretch& stretch : momentum.stretches) {
    const int64_t begin = std::max(stretch.begin, param.offset);
    const int64_t end = std::min(stretch.end, param.offset + param.num_elements());
    if (begin >= end) continue;
    const param::OwnedRange& range = store_.owned()[static_cast<size_t>(stretch.range)];
    const auto of_range = [&](const at::Tensor& flat) { return flat.narrow(0, begin - range.begin, end - begin); };
    parts.push_back({begin - param.offset, end - param.offset, of_range(range.master.detach()), of_range(range.data),
                     of_range(range.grad),
                     momentum.flat.narrow(0, stretch.place + begin - stretch.begin, end - begin)});
  }
  return parts;
}

// Gathers the whole matrix by all-reduces. Other ranks' elements are zero here, so the sums round nothing.
at::Tensor Muon::whole(const param::Parameter& param, const std::vector<OwnPart>& parts,
                       const std::vector<at::Tensor>& values) {
  const at::Tensor matrix = at::zeros(param.placement.global_shape, store_.flat_master().options());
  mesh::Placement counted = param.placement;
  std::erase_if(counted.pieces, [](const mesh::Piece& piece) { return piece.copy > 0; });
  for (size_t i = 0; i < parts.size(); ++i) {
    for_each_box(counted, parts[i].begin, parts[i].end, matrix, values[i],
                 [](const at::Tensor& global, const at::Tensor& local) { global.copy_(local); });
  }
  check(param.placement.sharded - mesh::AxisSet{mesh::Axis::Tensor} == mesh::AxisSet(),
        cat(param.name, ": parts of a matrix lie on tensor ranks and on those that shard it"));
  const bool shared_out = store_.sharding().parts > 1, sliced = param.placement.sharded.has(mesh::Axis::Tensor);
  const comm::CallName name(param.name);
  if (shared_out) shards_->all_reduce(matrix, ReduceOp::Sum).wait_host();
  if (sliced && tensor_) tensor_->all_reduce(matrix, ReduceOp::Sum).wait_host();
  return matrix;
}

void Muon::update_matrix(const param::Parameter& param, const OptimizerStep& step) {
  const std::vector<OwnPart> parts = own_parts(param);
  std::vector<at::Tensor> values;
  for (const OwnPart& part : parts) {
    const at::Tensor grad = part.grad * step.grad_scale;
    part.momentum.lerp_(grad, 1 - momentum_);
    values.push_back(grad.lerp(part.momentum, momentum_));
  }
  const at::Tensor matrix = orthogonalized(whole(param, parts, values));
  const GroupRates& rates = rates_.of(param);
  const double lr = step.lr * rates.lr_scale;
  const double size = 0.2 * std::sqrt(static_cast<double>(std::max(matrix.size(0), matrix.size(1))));
  for (size_t i = 0; i < parts.size(); ++i) {
    const OwnPart& part = parts[i];
    const at::Tensor direction = values[i].zero_();
    for_each_box(param.placement, part.begin, part.end, matrix, direction,
                 [](const at::Tensor& global, const at::Tensor& local) { local.copy_(global); });
    part.master.mul_(1 - lr * rates.weight_decay).sub_(direction, lr * size);
    if (part.data.scalar_type() != part.master.scalar_type()) part.data.copy_(part.master);
  }
}

}  // namespace braid::optim
