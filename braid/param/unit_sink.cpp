// The sink of sharded gradients. It has one buffer per unit and microbatch in flight, and reuses buffers by length.
#include "braid/param/unit_sink.h"

#include <utility>

#include "braid/base/errors.h"
#include "braid/param/block_memory.h"
#include "braid/param/memory_account.h"

namespace braid::param {

UnitSink::UnitSink(ParamStore& store) : store_(store), ledger_(store) {
  check(store.shards_gradients(), "gradients of units are sharded");
  if (store.reduction() == Reduction::Fast) return;
  writes_.emplace(*store.disk(), [this](const at::Tensor& gradient) { recycle(gradient); });
  for (const Parameter& param : store.params()) {
    const int unit = store.unit_of(param);
    for (const int use : param.local_uses) {
      trees_.try_emplace({unit, place_of(param, use)}, *store.disk(), *writes_, store.num_tree_levels(),
                         store.units()[unit].length(), store.flat_grads().scalar_type());
    }
  }
}

int UnitSink::place_of(const Parameter& param, int use) const {
  return store_.reduction() == Reduction::Fast ? 0 : ledger_.place(param, use);
}

void UnitSink::begin_step(int num_microbatches) {
  ledger_.begin_step(num_microbatches);
  filling_.clear();
  for (auto& [of, tree] : trees_) tree.restart();
}

// Where memory is scarce, it is not kept for the next gradients.
void UnitSink::recycle(const at::Tensor& gradient) {
  if (!store_.has_gradients_on_disk()) free_[gradient.numel()].push_back(gradient);
}

// Returns a buffer for a unit. Only its padding is cleared, because the first contribution to each parameter overwrites
// that parameter's part.
at::Tensor UnitSink::buffer(int unit) {
  const ShardUnit& of = store_.units()[unit];
  auto& free = free_[of.length()];
  at::Tensor taken;
  if (free.empty()) {
    const MemoryScope scope(MemoryCategory::Communication);
    taken = empty_on_blocks(of.length(), store_.flat_grads().scalar_type());
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

UnitSink::Filling& UnitSink::filling(UnitUse of_use, int micro) {
  const auto [found, fresh] = filling_.try_emplace({of_use, micro});
  Filling& now = found->second;
  if (!fresh) return now;
  const int unit = of_use.first;
  now.gradient = buffer(unit);
  const ShardUnit& of = store_.units()[unit];
  now.started.resize(of.num_params);
  for (int p = of.first_param; p < of.first_param + of.num_params; ++p) {
    now.num_left += trees_.empty() ? static_cast<int>(store_.params()[p].local_uses.size()) : 1;
  }
  return now;
}

GradSlot UnitSink::open(const Parameter& param, int use, int micro) {
  ledger_.open(param, use, micro);
  const int unit = store_.unit_of(param);
  Filling& now = filling({unit, place_of(param, use)}, micro);
  const ShardUnit& of = store_.units()[unit];
  const int place = param.index - of.first_param;
  const double beta = now.started[place] ? 1 : 0;
  now.started[place] = true;
  const at::Tensor slice = now.gradient.narrow(0, param.offset - of.begin, param.num_elements());
  return {slice.view(param.placement.local_shape), beta};
}

void UnitSink::close(const Parameter& param, int use, int micro) {
  const bool last = ledger_.close(param, use, micro);
  const UnitUse of{store_.unit_of(param), place_of(param, use)};
  if (--filling_.at({of, micro}).num_left == 0) {
    hand_out(of, micro, std::move(filling_.extract({of, micro}).mapped().gradient));
  }
  if (last && on_ready) on_ready(param);
}

void UnitSink::hand_out(UnitUse of, int micro, at::Tensor gradient) {
  check(on_unit != nullptr, "somebody takes the gradients of a unit");
  if (const auto tree = trees_.find(of); tree != trees_.end()) gradient = tree->second.add(micro, std::move(gradient));
  if (gradient.defined()) on_unit(of.first, of.second, gradient);
}

}  // namespace braid::param
