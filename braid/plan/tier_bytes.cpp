#include "braid/plan/tier_bytes.h"

#include <algorithm>
#include <cmath>

#include "braid/spec/early_updates.h"

namespace braid::plan {
namespace {

// The scales of so many elements in codes fill a block of the disk.
constexpr double kCodedChunk = 4096 / sizeof(float) * kStateBlock;

// Returns the bytes of the chunks that an update of optimizer states on disk holds (optim/chunked_pass.h).
double chunk_bytes(const RunSpec& spec, const StateBytes& held) {
  const double element = element_bytes(spec.train.dtype), wide = std::max(element, kFloatBytes);
  const int moments = num_moments(spec.optimizer, ParameterKind::BlockMatrix);
  const bool has_codes = moments > 0 && spec.optimizer.state_dtype == StateType::Int8;
  const double moment = moments > 0 ? state_element_bytes(spec.optimizer.state_dtype, wide) : 0;
  const double master = element < wide ? wide : 0;
  const double backup = backup_bytes(spec, held) > 0 ? wide : 0;
  const double gradient = spec.memory.gradients == Tier::Disk ? wide : 0;
  const double weight = spec.memory.parameters == Tier::Disk ? element : 0;
  const double states = moments * moment + master;
  if (states + gradient + weight == 0) return 0;
  const double elements = states > 0 ? held.optimizer / states : held.gradients / wide;
  const double largest = std::max({has_codes ? std::floor(moment) : moment, master, backup, gradient, weight});
  double chunk = std::ldexp(spec.memory.chunk_mb, 20) / largest;
  if (has_codes) chunk = std::max(std::floor(chunk / kCodedChunk), 1.0) * kCodedChunk;
  chunk = std::min(chunk, elements);
  const double all = (states + backup + gradient + weight) * chunk * kChunksInMemory;
  return all == 0 ? 0 : all + static_cast<double>(chunk_alignment(static_cast<int64_t>(all)));
}

}  // namespace

StateBytes in_memory(const RunSpec& spec, const StateBytes& held) {
  StateBytes bytes = held;
  if (!is_resident(spec.memory.optimizer)) bytes.optimizer = 0;
  if (spec.memory.optimizer == Tier::Disk) bytes.optimizer = chunk_bytes(spec, held);
  if (!is_resident(spec.memory.gradients)) bytes.gradients = 0;
  if (!is_resident(spec.memory.parameters)) bytes.weights = bytes.frozen = bytes.forward_only = 0;
  return bytes;
}

int sharded_stage(const RunSpec& spec) {
  if (spec.sync.zero == 0) return 0;
  if (spec.memory.parameters == Tier::Disk) return 3;
  return spec.memory.gradients == Tier::Disk ? std::max(spec.sync.zero, 2) : spec.sync.zero;
}

double bytes_on(Tier tier, const RunSpec& run, const StateBytes& held) {
  const MemorySpec& spec = run.memory;
  const double states = spec.optimizer == tier ? held.optimizer : 0;
  const double weights = spec.parameters == tier ? held.weights : 0;
  const int updated_by = run.sync.zero == 3 ? 1 : spec::num_shards(run);  // ranks that update parts of held.weights
  const double backup = backup_bytes(run, held) / updated_by;
  const double old = tier == Tier::Disk && spec::speculates(run) ? states + weights + backup : 0;
  return states + weights + old + (spec.gradients == tier ? held.gradients : 0) +
         (spec.parameters == tier ? held.frozen : 0);
}

double backup_bytes(const RunSpec& spec, const StateBytes& held) {
  const bool rounded = element_bytes(spec.train.dtype) < kFloatBytes;
  const bool opens_disk = held.optimizer > 0 || spec.memory.gradients == Tier::Disk;
  const bool backs_up = opens_disk && !rounded && spec.memory.parameters != Tier::Disk;
  return spec::speculates(spec) && backs_up ? held.weights : 0;
}

}  // namespace braid::plan
