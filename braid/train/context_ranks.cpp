#include "braid/train/context_ranks.h"

#include "braid/spec/context_rules.h"

namespace braid::train {

ContextRanks::ContextRanks(const RunSpec& spec, Communicator& all) {
  if (spec.mesh.context == 1) return;
  const int exchange = spec::exchange_ranks(spec), rank = all.rank();
  exchange_ = all.split(rank / exchange, rank, "exchange of heads");
  ring_ = all.split(rank % exchange, rank, "ring of keys");
  const bool gathers = spec.mesh.context_parallel == ContextParallel::AllGather;
  group_ = {&all, exchange_->size() > 1 ? exchange_.get() : nullptr, ring_->size() > 1 ? ring_.get() : nullptr,
            gathers ? nn::RingKeys::Gathered : nn::RingKeys::GoAround};
}

}  // namespace braid::train
