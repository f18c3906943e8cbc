// The rule of each section, and the keys whose rule differs from their section's.
#include "braid/spec/change_on_resume.h"

#include <algorithm>
#include <iterator>

namespace braid::spec {
namespace {

using enum ChangeOnResume;

struct Row {
  std::string_view name;
  ChangeOnResume change;
};

// A section without a row is Free.
constexpr Row kSections[] = {{"model", Never}, {"optimizer", ByLeave}};

constexpr Row kKeys[] = {
    // Names of models, whose sizes are compared themselves; padding; the scale of initial values.
    {"model.preset", Free},
    {"model.config", Free},
    {"model.vocab_multiple", Free},
    {"model.init_std", Free},
    {"model.dropout", ByLeave},
    {"data.include", Never},
    {"data.weights", Never},
    {"data.validation_fraction", Never},
    {"data.attention", ByLeave},
    {"data.sequences", Never},
    {"data.mask_fraction", ByLeave},
    // All synchronous schedules compute the same gradients (resumed_state.h).
    {"pipeline.schedule", ByLeave},
    {"pipeline.group", ByLeave},
    {"pipeline.weights", ByLeave},
    {"sync.replication", ByLeave},
    {"sync.compression", ByLeave},
    {"sync.compression_fraction", ByLeave},
    {"sync.compression_rank", ByLeave},
    {"sync.compression_start", ByLeave},
    {"sync.period", ByLeave},
    {"sync.period_warmup", ByLeave},
    {"sync.outer_lr", ByLeave},
    {"sync.outer_momentum", ByLeave},
    {"sync.consistency", ByLeave},
    {"sync.staleness", ByLeave},
    {"sync.push_every", ByLeave},
    {"sync.pull_every", ByLeave},
    {"optimizer.kind", Never},
    {"train.batch", Never},
    {"train.seed", Never},
    {"train.dtype", ByLeave},
    {"train.tensor_parts", ByLeave},
};

template <class Rows>
const Row* row_of(const Rows& rows, const std::string& name) {
  const auto found = std::find_if(std::begin(rows), std::end(rows), [&](const Row& row) { return row.name == name; });
  return found == std::end(rows) ? nullptr : found;
}

}  // namespace

ChangeOnResume change_on_resume(const Field& field) {
  if (const Row* own = row_of(kKeys, field.key)) return own->change;
  const Row* section = row_of(kSections, section_of(field));
  return section ? section->change : Free;
}

}  // namespace braid::spec
