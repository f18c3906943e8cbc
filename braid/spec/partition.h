// The partition of the model into pipeline stages, from pipeline.partition. It counts blocks; plan/partition.h balances
// costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/schedule/generators.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

// Returns the traits of pipeline.schedule (schedule/generators.h). Returns null for file:PATH and for unknown names.
const ScheduleTraits* traits_of(const PipelineSpec& spec);

// Returns the PATH of "file:PATH"; empty for a named schedule.
std::string schedule_file(const PipelineSpec& spec);

// Returns the stages per rank; for file:PATH, pipeline.chunks, where 0 leaves the number to the file.
int chunks_per_rank(const PipelineSpec& spec);
// Returns mesh.pipe x chunks_per_rank().
int num_stages(const RunSpec& spec);

inline bool is_even(const PipelineSpec& pipeline) { return pipeline.partition == "even"; }
inline bool is_measured(const PipelineSpec& pipeline) { return pipeline.partition == "measured"; }

// Parses "3,2.5,2.5", the transformer blocks of each stage. Returns nothing if `text` is not a list of numbers.
std::optional<std::vector<double>> partition_list(const std::string& text);

// Returns the most even partition, as such a list. The remainder goes to the stages after the first, in order, then to
// the first. The last stage gets none of it, since it also computes the logits; the first comes late, since it keeps
// the most activations in flight. REQUIRES: layers >= num_stages.
//
//   8 blocks on 3 stages: 3,3,2      6 on 4: 1,2,2,1      5 on 2: 3,2
std::string even_partition(int layers, int num_stages);

// Returns the first unit of each of `num_stages` stages, followed by the number of units (num_units() of
// model/shape.h). The first stage holds the embedding and the last the head, in addition to their blocks. REQUIRES:
// `spec` has no problems, and its partition is not "measured".
std::vector<int> stage_units(const RunSpec& spec, int num_stages);
// Returns stage_units(); nothing if the partition is unknown or has problems.
std::optional<std::vector<int>> known_stage_units(const RunSpec& spec, int num_stages);

// Returns the list of blocks per stage from which stage_units() makes `first_unit`.
std::string partition_text(const ModelSpec& model, const std::vector<int>& first_unit);

}  // namespace braid::spec
