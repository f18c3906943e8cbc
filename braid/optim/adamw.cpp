// One parallel region per step over blocks of the flat buffers: 28 bytes of memory traffic per float32
// element, 30 with bfloat16 data.
#include "braid/optim/adamw.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "braid/base/bfloat16.h"
#include "braid/base/errors.h"
#include "braid/optim/adamw_update.h"
#include "braid/optim/on_device.h"
#include "braid/param/memory_account.h"

namespace braid {
namespace {

constexpr int64_t kGrain = 16 * ParamStore::kAlign;  // elements; below it a second thread costs more than it saves

// Where rounded masters go: nowhere when the masters are the data.
struct NoData {};

void round_lanes(NoData*, const void*, int) {}
void round_lanes(Bf16* __restrict__ data, const float* __restrict__ master, int lanes) {
#pragma GCC ivdep
  for (int j = 0; j < lanes; ++j) data[j] = narrow(master[j]);
}
void round_lanes(c10::Half* __restrict__ data, const float* __restrict__ master, int lanes) {
  for (int j = 0; j < lanes; ++j) data[j] = c10::Half(master[j]);
}

// g++ 12 vectorises loops of known length over memory that cannot overlap. (Local copies of the lanes would say so too,
// but their 16-byte stores and 32-byte loads stall store forwarding: three times slower.)
template <class T, class Data>
void update_range(const AdamWRange<T>& range, Data* data) {
  constexpr int kLanes = 64;
  static_assert(ParamStore::kAlign % kLanes == 0);
  const AdamWFactors<T> factors = range.factors;
  T* __restrict__ weight = range.weight;
  const T* __restrict__ grad = range.grad;
  T* __restrict__ first = range.first;
  T* __restrict__ second = range.second;
  for (const T* end = weight + range.count; weight != end;) {
#pragma GCC ivdep
    for (int j = 0; j < kLanes; ++j) adamw_update(weight[j], grad[j], first[j], second[j], factors);
    round_lanes(data, weight, kLanes);
    weight += kLanes, grad += kLanes, first += kLanes, second += kLanes, data += kLanes;
  }
}

}  // namespace

AdamW::AdamW(const OptimizerSpec& spec, ParamStore& store) : spec_(spec), store_(store) {
  check(spec.eps > 0, "eps keeps 0 / 0 out of the padding");
  for (const Parameter& param : store.params()) {
    const double decay = param.decay == WeightDecay::Yes ? spec.weight_decay : 0;
    const bool last = param.index + 1 == static_cast<int>(store.params().size());
    const int64_t end = last ? store.num_flat() : store.params()[param.index + 1].offset;
    if (segments_.empty() || segments_.back().decay != decay) segments_.push_back({param.offset, end, decay});
    segments_.back().end = end;
  }
  if (!store.flat_master().is_cpu()) decays_ = on_device::decay_map(store);
}

void AdamW::hold_moments() const {
  if (holds_moments()) return;
  const MemoryScope scope(MemoryCategory::Optimizer);
  first_moment_ = at::zeros({store_.num_owned()}, store_.flat_master().options().requires_grad(false));
  second_moment_ = at::zeros_like(first_moment_);
}

template <class T>
AdamWFactors<T> AdamW::factors(const OptimizerStep& step) const {
  const double t = static_cast<double>(num_steps_);
  return {
      .keep = 1,
      .grad_scale = static_cast<T>(step.grad_scale),
      .beta1 = static_cast<T>(spec_.beta1),
      .beta2 = static_cast<T>(spec_.beta2),
      .fresh1 = static_cast<T>(1 - spec_.beta1),
      .fresh2 = static_cast<T>(1 - spec_.beta2),
      .step_size = static_cast<T>(step.lr / (1 - std::pow(spec_.beta1, t))),
      .root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(spec_.beta2, t))),
      .eps = static_cast<T>(spec_.eps),
  };
}

template <class T, class Data>
void AdamW::update(const OwnedRange& range, const OptimizerStep& step) {
  const AdamWFactors<T> common = factors<T>(step);
  T* const weight = range.master.mutable_data_ptr<T>();
  Data* const data = static_cast<Data*>(range.data.mutable_data_ptr());
  const T* const grad = range.grad.const_data_ptr<T>();
  T* const first = first_moment_.mutable_data_ptr<T>() + range.place;
  T* const second = second_moment_.mutable_data_ptr<T>() + range.place;
  constexpr int64_t kAlign = ParamStore::kAlign;
  at::parallel_for(0, range.length() / kAlign, kGrain / kAlign, [&](int64_t first_block, int64_t end_block) {
    const int64_t begin = range.begin + first_block * kAlign, end = range.begin + end_block * kAlign;
    AdamWFactors<T> factors = common;
    auto segment = std::partition_point(segments_.begin(), segments_.end(), [&](auto& s) { return s.end <= begin; });
    for (; segment != segments_.end() && segment->begin < end; ++segment) {
      const int64_t from = std::max(begin, segment->begin), to = std::min(end, segment->end), at = from - range.begin;
      factors.keep = static_cast<T>(1 - step.lr * segment->decay);
      update_range<T>({weight + at, grad + at, first + at, second + at, to - from, factors}, data + at);
    }
  });
}

template <class T>
void AdamW::update_on_device(const OptimizerStep& step) {
  AdamWFactors<T> of_step = factors<T>(step);
  of_step.keep = static_cast<T>(1 - step.lr * spec_.weight_decay);
  on_device::adamw(store_, {decays_, first_moment_, second_moment_}, of_step);
}

void AdamW::update_on_host(const OwnedRange& range, const OptimizerStep& step) {
  switch (store_.flat_data().scalar_type()) {
    case at::kDouble:
      update<double, NoData>(range, step);
      break;
    case at::kBFloat16:
      update<float, Bf16>(range, step);
      break;
    case at::kHalf:
      update<float, c10::Half>(range, step);
      break;
    default:
      update<float, NoData>(range, step);
  }
}

void AdamW::step(const OptimizerStep& step) {
  ++num_steps_;
  hold_moments();
  if (store_.flat_master().is_cpu()) {
    for (const OwnedRange& range : store_.owned()) update_on_host(range, step);
  } else if (store_.flat_master().scalar_type() == at::kDouble) {
    update_on_device<double>(step);
  } else {
    update_on_device<float>(step);
  }
  // The writes went past autograd: a backward pass that saved the old weights must fail, not use the new ones.
  store_.flat_data().unsafeGetTensorImpl()->bump_version();
}

}  // namespace braid
