// A count of users for each unit.
#include "braid/sync/unit_gatherer.h"

#include "braid/base/errors.h"
#include "braid/sync/ring_bytes.h"

namespace braid::sync {

UnitGatherer::UnitGatherer(param::ParamStore& store, Communicator& shards)
    : store_(store), shards_(shards), units_(store.units().size()) {}

void UnitGatherer::start(int unit) {
  Unit& now = units_[unit];
  if (now.state != State::Free) return;
  store_.allocate_unit(unit);
  const at::Tensor& whole = store_.unit_data(unit);
  now.work = shards_.all_gather(whole, store_.owned()[unit].data);
  now.state = State::Gathering;
  bytes_sent_ += one_way_bytes(whole, shards_.size());
}

void UnitGatherer::free(int unit) {
  store_.free_unit(unit);
  units_[unit] = {};
}

void UnitGatherer::prefetch(int block) {
  for (const int unit : store_.units_of_block(block)) start(unit);
}

void UnitGatherer::acquire(int block) {
  prefetch(block);
  for (const int unit : store_.units_of_block(block)) {
    Unit& now = units_[unit];
    now.work.order_before(shards_.queue());
    now.work = {};
    now.state = State::Whole;
    ++now.num_users;
  }
}

void UnitGatherer::release(int block) {
  for (const int unit : store_.units_of_block(block)) {
    check(units_[unit].num_users > 0, "a block that is released was acquired");
    if (--units_[unit].num_users == 0) free(unit);
  }
}

void UnitGatherer::drop() {
  for (size_t unit = 0; unit < units_.size(); ++unit) {
    if (units_[unit].state != State::Gathering) continue;
    units_[unit].work.order_before(shards_.queue());
    free(static_cast<int>(unit));
  }
}

}  // namespace braid::sync
