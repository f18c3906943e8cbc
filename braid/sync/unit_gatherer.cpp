// Reads are waited for when a block is acquired, so that all ranks gather units in the same order.
#include "braid/sync/unit_gatherer.h"

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/sync/ring_bytes.h"

namespace braid::sync {

comm::OpName name_of_unit(std::string_view what, const param::ParamStore& store, size_t unit) {
  return comm::OpName(cat(what, " of ", store.first_param(static_cast<int>(unit)).name, " .."));
}

UnitGatherer::UnitGatherer(param::ParamStore& store, Communicator& shards)
    : store_(store), shards_(shards), units_(static_cast<size_t>(store.num_gathered())) {
  for (size_t unit = 0; unit < units_.size(); ++unit) units_[unit].name = name_of_unit("parameters", store, unit);
}

UnitGatherer::~UnitGatherer() {
  if (store_.disk()) store_.disk()->disk().drain();
}

at::Tensor UnitGatherer::own_place(int unit) const {
  const at::Tensor& whole = store_.gathered_data(unit);
  const int64_t length = whole.numel() / shards_.size();
  return whole.narrow(0, shards_.rank() * length, length);
}

void UnitGatherer::start(int unit) {
  Unit& now = units_[unit];
  if (now.state != State::Free) return;
  store_.allocate_unit(unit);
  const at::Tensor own = store_.own_part(unit);
  if (!store_.is_on_disk(own)) return gather(unit, own);
  now.reading = store_.disk()->read(own, own_place(unit));
  now.state = State::Reading;
}

void UnitGatherer::gather(int unit, const at::Tensor& own) {
  Unit& now = units_[unit];
  const at::Tensor& whole = store_.gathered_data(unit);
  const comm::CallName name(now.name);
  now.work = shards_.all_gather(whole, own);
  now.state = State::Gathering;
  bytes_sent_ += one_way_bytes(whole, shards_.size());
}

void UnitGatherer::wait_for_disk(int unit) {
  if (units_[unit].state != State::Reading) return;
  store_.disk()->disk().wait(units_[unit].reading);
  gather(unit, own_place(unit));
}

void UnitGatherer::free(int unit) {
  store_.free_unit(unit);
  Unit& now = units_[unit];
  now.state = State::Free;
  now.num_users = 0;
  now.work = {};
}

void UnitGatherer::prefetch(int block) {
  for (const int unit : store_.gathered_by_block(block)) start(unit);
}

void UnitGatherer::acquire(int block) {
  prefetch(block);
  for (const int unit : store_.gathered_by_block(block)) wait_for_disk(unit);
  for (const int unit : store_.gathered_by_block(block)) {
    Unit& now = units_[unit];
    now.work.order_before(shards_.queue());
    now.work = {};
    now.state = State::Whole;
    ++now.num_users;
  }
}

void UnitGatherer::release(int block) {
  for (const int unit : store_.gathered_by_block(block)) {
    check(units_[unit].num_users > 0, "a block that is released was acquired");
    if (--units_[unit].num_users == 0) free(unit);
  }
}

void UnitGatherer::drop() {
  for (size_t u = 0; u < units_.size(); ++u) {
    const int unit = static_cast<int>(u);
    if (units_[u].state == State::Reading) store_.disk()->disk().wait(units_[u].reading);
    if (units_[u].state == State::Gathering) units_[u].work.order_before(shards_.queue());
    if (units_[u].state == State::Reading || units_[u].state == State::Gathering) free(unit);
  }
}

}  // namespace braid::sync
