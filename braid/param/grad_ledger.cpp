// The ledger of contributions: one byte per (use, microbatch) of each parameter, reused in every step.
#include "braid/param/grad_ledger.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::param {
namespace {

std::string title(const Parameter& param, int use, int micro) {
  return cat(param.name, ", use ", use, ", microbatch ", micro);
}

}  // namespace

GradLedger::GradLedger(const ParamStore& store) : store_(store), entries_(store.params().size()) {
  for (const Parameter& param : store.params()) {
    entries_[param.index].first_slice = num_slices_;
    num_slices_ += store.reduction() == Reduction::Fast ? 1 : static_cast<int>(param.local_uses.size());
  }
  slice_open_.resize(num_slices_);
}

int GradLedger::place(const Parameter& param, int use) const {
  const auto& uses = param.local_uses;
  const auto found = std::find(uses.begin(), uses.end(), use);
  if (found == uses.end()) check(false, cat(param.name, " has no use ", use, " on this rank"));
  return static_cast<int>(found - uses.begin());
}

int GradLedger::slice(const Parameter& param, int place) const {
  return entries_[param.index].first_slice + (store_.reduction() == Reduction::Fast ? 0 : place);
}

void GradLedger::begin_step(int num_microbatches) {
  check(num_microbatches > 0, "a step has microbatches");
  num_microbatches_ = num_microbatches;
  for (const Parameter& param : store_.params()) {
    Entry& entry = entries_[param.index];
    entry.num_left = num_microbatches * static_cast<int>(param.local_uses.size());
    entry.states.assign(entry.num_left, State::Waiting);
  }
  slice_open_.assign(num_slices_, false);
}

GradLedger::State& GradLedger::state(const Parameter& param, int place, int micro) {
  if (micro < 0 || micro >= num_microbatches_) {
    check(false, cat(title(param, param.local_uses[place], micro), ": the step has ", num_microbatches_));
  }
  return entries_[param.index].states[place * num_microbatches_ + micro];
}

int GradLedger::open(const Parameter& param, int use, int micro) {
  const int at_place = place(param, use);
  State& now = state(param, at_place, micro);
  if (now != State::Waiting) check(false, cat(title(param, use, micro), ": a gradient is opened once"));
  const int at = slice(param, at_place);
  if (slice_open_[at]) check(false, cat(title(param, use, micro), ": another gradient is being written there"));
  slice_open_[at] = true;
  now = State::Open;
  return at_place;
}

bool GradLedger::close(const Parameter& param, int use, int micro) {
  const int at_place = place(param, use);
  State& now = state(param, at_place, micro);
  if (now != State::Open) check(false, cat(title(param, use, micro), ": closed without being open"));
  slice_open_[slice(param, at_place)] = false;
  now = State::Closed;
  return --entries_[param.index].num_left == 0;
}

}  // namespace braid::param
