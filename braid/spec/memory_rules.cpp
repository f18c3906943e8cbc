// The rules of memory.recompute (known words, one or one per stage, blocks that stages have), of the tiers, of
// memory.paths, and of optimizer.state_dtype.
#include <algorithm>

#include "braid/base/text.h"
#include "braid/spec/activation_blocks.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/cross_rules.h"
#include "braid/spec/partition.h"
#include "braid/spec/recompute.h"

namespace braid::spec {
namespace {

bool known_words(const View& at) { return recompute_faults(at.spec.memory).empty(); }

bool lists_blocks(const View& at) {
  const auto entries = recompute_entries(at.spec.memory);
  return std::ranges::any_of(entries, [](const std::string& entry) { return entry.starts_with("blocks:"); });
}

std::string missing(const View& at) {
  const auto units = known_stage_units(at.spec, num_stages(at.spec));
  return units && lists_blocks(at) ? missing_blocks(at.spec.memory, stage_blocks(at.spec, num_stages(at.spec))) : "";
}

bool has_narrow_states(const View& at) { return at.spec.optimizer.state_dtype != StateType::Float32; }

}  // namespace

std::vector<CrossRule> memory_rules() {
  return {
      {{"memory.recompute"},
       known_words,
       [](const View& at) {
         return cat(
             "must be \"none\", \"selective\", \"full\", \"every:K\" with K from 1 to 4096 or \"blocks:LIST\", or one "
             "of them per stage, separated by commas, or \"auto\": ",
             recompute_faults(at.spec.memory));
       }},
      {{"memory.recompute", "mesh.pipe", "pipeline.schedule", "pipeline.chunks"},
       [](const View& at) {
         const int entries = static_cast<int>(recompute_entries(at.spec.memory).size()), stages = num_stages(at.spec);
         return !known_words(at) || entries == 1 || stages == 0 || entries == stages;
       },
       [](const View& at) {
         const int stages = num_stages(at.spec);
         return cat("must have one entry for all stages or one for each of ", stages);
       }},
      {{"memory.recompute", "mesh.pipe", "pipeline.schedule", "pipeline.chunks", "pipeline.partition", "model.layers",
        "model.family"},
       [](const View& at) { return missing(at).empty(); },
       [](const View& at) { return cat("must list blocks that stages have, from 0, not ", missing(at)); }},
      {{"memory.optimizer", "train.device"},
       [](const View& at) { return at.spec.memory.optimizer != Tier::Disk || at.spec.train.device == DeviceKind::Cpu; },
       [](const View&) {
         return std::string("needs train.device = \"cpu\": updates of states on disk are on the host");
       }},
      {{"memory.activations", "train.device"},
       [](const View& at) {
         return at.spec.memory.activations != Tier::Disk || at.spec.train.device == DeviceKind::Cpu;
       },
       [](const View&) { return std::string("needs train.device = \"cpu\": the disk is written from host memory"); }},
      {{"memory.activation_blocks", "mesh.pipe", "pipeline.schedule", "pipeline.chunks"},
       [](const View& at) { return activation_blocks_fault(at.spec.memory, num_stages(at.spec)).empty(); },
       [](const View& at) { return activation_blocks_fault(at.spec.memory, num_stages(at.spec)); }},
      {{"memory.activation_blocks", "memory.activations"},
       [](const View& at) {
         return at.spec.memory.activation_blocks == kAllBlocks || !is_resident(at.spec.memory.activations);
       },
       [](const View&) { return std::string("needs memory.activations = \"disk\""); }},
      {{"memory.activation_blocks", "memory.recompute"},
       [](const View& at) {
         return at.spec.memory.activation_blocks == kAllBlocks || at.spec.memory.recompute != kAutoRecompute;
       },
       [](const View&) { return std::string("must be \"all\" when memory.recompute is \"auto\", which chooses it"); }},
      {{"memory.gradients", "memory.optimizer"},
       [](const View& at) { return at.spec.memory.gradients != Tier::Disk || at.spec.memory.optimizer == Tier::Disk; },
       [](const View&) { return std::string("needs memory.optimizer = \"disk\": the update reads both together"); }},
      {{"memory.parameters", "memory.optimizer"},
       [](const View& at) { return at.spec.memory.parameters != Tier::Disk || at.spec.memory.optimizer == Tier::Disk; },
       [](const View&) { return std::string("needs memory.optimizer = \"disk\": the update writes both together"); }},
      {{"optimizer.state_dtype", "train.dtype"},
       [](const View& at) { return !has_narrow_states(at) || at.spec.train.dtype != DType::Float64; },
       [](const View&) {
         return std::string("must be \"float32\" when train.dtype is \"float64\", whose states are float64");
       }},
      {{"optimizer.state_dtype", "train.device"},
       [](const View& at) { return !has_narrow_states(at) || at.spec.train.device == DeviceKind::Cpu; },
       [](const View&) {
         return std::string(
             "needs train.device = \"cpu\": updates of states of fewer bits are not built for devices yet");
       }},
      {{"sync.zero", "memory.gradients", "memory.parameters", "mesh.batch_shares"},
       [](const View& at) {
         const MemorySpec& memory = at.spec.memory;
         const bool by_microbatch = memory.gradients == Tier::Disk || memory.parameters == Tier::Disk;
         return !by_microbatch || num_shards(at.spec) == 1 || has_equal_shares(at.spec.mesh);
       },
       [](const View&) {
         return std::string(
             "must be 0 where gradients or parameters are on disk and mesh.batch_shares are not equal: data ranks move "
             "shards together for each microbatch");
       }},
      {{"sync.zero", "memory.parameters", "pipeline.schedule"},
       [](const View& at) {
         const ScheduleTraits* const traits = traits_of(at.spec.pipeline);
         const bool mirrored = traits && traits->placement == schedule::StagePlacement::Mirrored;
         return at.spec.memory.parameters != Tier::Disk || num_shards(at.spec) == 1 || !mirrored;
       },
       [](const View&) {
         return std::string(
             "must be 0 where parameters are on disk in a bidirectional pipeline: the two ranks of a stage gather "
             "shards "
             "in different orders");
       }},
      {{"memory.paths"},
       [](const View& at) { return std::ranges::find(at.spec.memory.paths, "") == at.spec.memory.paths.end(); },
       [](const View&) { return std::string("must not hold an empty path"); }},
  };
}

}  // namespace braid::spec
