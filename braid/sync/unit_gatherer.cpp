// Reads are waited for when a block is acquired, so that all ranks gather units in the same order.
#include "braid/sync/unit_gatherer.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/sync/ring_bytes.h"

namespace braid::sync {
namespace {

// Units that are being read at once. The disk is busy with two; more would slow down the one that is needed first.
constexpr int kMostReading = 4;

}  // namespace

comm::OpName name_of_unit(std::string_view what, const param::ParamStore& store, size_t unit) {
  return comm::OpName(cat(what, " of ", store.first_param(static_cast<int>(unit)).name, " .."));
}

UnitGatherer::UnitGatherer(param::ParamStore& store, Communicator& shards, const ParameterMemory& memory)
    : store_(store),
      shards_(shards),
      residency_(store, shards, memory),
      units_(static_cast<size_t>(store.num_gathered())) {
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

std::optional<std::string> UnitGatherer::begin_step() {
  auto decision = residency_.decide();
  bytes_read_ = 0;
  run(residency_.begin_step());
  return decision;
}

void UnitGatherer::run(const moves::Moves& moves) {
  for (const moves::Departure& leaves : moves.evictions) free(leaves.chunk);
  due_.insert(due_.end(), moves.loads.begin(), moves.loads.end());
  start_due();
}

void UnitGatherer::start_due() {
  const auto is_reading = [](const Unit& unit) { return unit.state == State::Reading; };
  while (!due_.empty() && std::ranges::count_if(units_, is_reading) < kMostReading) start(due_.front());
}

void UnitGatherer::start(int unit) {
  Unit& now = units_[unit];
  std::erase(due_, unit);
  if (now.state != State::Free) return;
  store_.allocate_unit(unit);
  const at::Tensor own = store_.own_part(unit);
  if (!store_.is_on_disk(own)) return gather(unit, own);
  now.reading = store_.disk()->read(own, own_place(unit));
  now.state = State::Reading;
  bytes_read_ += static_cast<int64_t>(own.nbytes());
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
  Unit& now = units_[unit];
  if (now.state == State::Reading) store_.disk()->disk().wait(now.reading);
  if (now.state == State::Gathering) now.work.order_before(shards_.queue());
  std::erase(due_, unit);
  store_.free_unit(unit);
  now.state = State::Free;
  now.num_users = 0;
  now.work = {};
}

void UnitGatherer::prefetch(int block) {
  if (residency_.decides()) return;
  for (const int unit : store_.gathered_by_block(block)) start(unit);
}

void UnitGatherer::acquire(int block) {
  const std::vector<int>& units = store_.gathered_by_block(block);
  run(residency_.before_use(units));
  for (const int unit : units) start(unit);
  for (const int unit : units) wait_for_disk(unit);
  start_due();
  for (const int unit : units) {
    Unit& now = units_[unit];
    now.work.order_before(shards_.queue());
    now.work = {};
    now.state = State::Whole;
    ++now.num_users;
  }
}

void UnitGatherer::release(int block) {
  const std::vector<int>& units = store_.gathered_by_block(block);
  for (const int unit : units) {
    check(units_[unit].num_users > 0, "a block that is released was acquired");
    if (--units_[unit].num_users == 0 && !residency_.decides()) free(unit);
  }
  run(residency_.after_use(units));
}

void UnitGatherer::end_step() {
  run(residency_.end_step(bytes_read_));
  drop_prefetched();
}

void UnitGatherer::drop_prefetched() {
  for (size_t unit = 0; unit < units_.size(); ++unit) {
    const State state = units_[unit].state;
    if (state == State::Reading || state == State::Gathering) free(static_cast<int>(unit));
  }
}

}  // namespace braid::sync
