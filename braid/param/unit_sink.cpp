// The sink of sharded gradients. It has one buffer per unit and microbatch in flight, and reuses buffers by length.
#include "braid/param/unit_sink.h"

#include <ATen/ops/empty.h>

#include "braid/base/errors.h"
#include "braid/param/memory_account.h"

namespace braid::param {

void UnitSink::begin_step(int num_microbatches) {
  ledger_.begin_step(num_microbatches);
  filling_.clear();
}

// Returns a buffer for a unit. Only its padding is cleared, because the first contribution to each parameter overwrites
// that parameter's part.
at::Tensor UnitSink::buffer(int unit) {
  const ShardUnit& of = store_.units()[unit];
  auto& free = free_[of.length()];
  at::Tensor taken;
  if (free.empty()) {
    const MemoryScope scope(MemoryCategory::Communication);
    taken = at::empty({of.length()}, store_.flat_grads().options());
  } else {
    taken = std::move(free.back());
    free.pop_back();
  }
  for (int p = of.first_param; p < of.first_param + of.num_params; ++p) {
    const Parameter& param = store_.params()[p];
    const int64_t end = param.offset + param.num_elements();
    const bool last = p + 1 == of.first_param + of.num_params;
    const int64_t next = last ? of.end : store_.params()[p + 1].offset;
    taken.narrow(0, end - of.begin, next - end).zero_();
  }
  return taken;
}

UnitSink::Filling& UnitSink::filling(int unit, int micro) {
  const auto [found, fresh] = filling_.try_emplace({unit, micro});
  Filling& now = found->second;
  if (!fresh) return now;
  now.gradient = buffer(unit);
  const ShardUnit& of = store_.units()[unit];
  now.started.resize(of.num_params);
  for (int p = of.first_param; p < of.first_param + of.num_params; ++p) {
    now.num_left += static_cast<int>(store_.params()[p].local_uses.size());
  }
  return now;
}

GradSlot UnitSink::open(const Parameter& param, int use, int micro) {
  ledger_.open(param, use, micro);
  const int unit = store_.unit_of(param);
  Filling& now = filling(unit, micro);
  const ShardUnit& of = store_.units()[unit];
  const int place = param.index - of.first_param;
  const double beta = now.started[place] ? 1 : 0;
  now.started[place] = true;
  const at::Tensor slice = now.gradient.narrow(0, param.offset - of.begin, param.num_elements());
  return {slice.view(param.placement.local_shape), beta};
}

void UnitSink::close(const Parameter& param, int use, int micro) {
  const bool last = ledger_.close(param, use, micro);
  const int unit = store_.unit_of(param);
  if (--filling_.at({unit, micro}).num_left == 0) {
    const Filling full = std::move(filling_.extract({unit, micro}).mapped());
    check(on_unit != nullptr, "somebody takes the gradients of a unit");
    on_unit(unit, micro, full.gradient);
  }
  if (last && on_ready) on_ready(param);
}

}  // namespace braid::param
