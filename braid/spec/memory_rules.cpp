// The rules of memory.recompute, whose words are known and of which there is one or one per stage, of the tiers, of
// memory.paths, and of optimizer.state_dtype.
#include <algorithm>

#include "braid/base/text.h"
#include "braid/spec/cross_rules.h"
#include "braid/spec/partition.h"
#include "braid/spec/recompute.h"

namespace braid::spec {
namespace {

bool known_words(const View& at) {
  const auto entries = recompute_entries(at.spec.memory);
  return std::all_of(entries.begin(), entries.end(),
                     [](const std::string& entry) { return recompute_policy(entry).has_value(); });
}

bool has_narrow_states(const View& at) { return at.spec.optimizer.state_dtype != StateType::Float32; }

}  // namespace

std::vector<CrossRule> memory_rules() {
  return {
      {{"memory.recompute"},
       known_words,
       [](const View&) {
         return std::string(
             "must be \"none\", \"selective\", \"full\" or \"every:K\" with K from 1 to 4096, or one of them per "
             "stage, "
             "separated by commas");
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
      {{"memory.optimizer", "train.device"},
       [](const View& at) { return at.spec.memory.optimizer != Tier::Disk || at.spec.train.device == DeviceKind::Cpu; },
       [](const View&) {
         return std::string("needs train.device = \"cpu\": updates of states on disk are on the host");
       }},
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
         return std::string("needs train.device = \"cpu\": updates of 16-bit states are not built for devices yet");
       }},
      {{"memory.paths"},
       [](const View& at) { return std::ranges::find(at.spec.memory.paths, "") == at.spec.memory.paths.end(); },
       [](const View&) { return std::string("must not hold an empty path"); }},
  };
}

}  // namespace braid::spec
