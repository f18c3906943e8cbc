// The part of the model that each pipeline stage holds, from pipeline.partition. It counts blocks; plan/partition.h
// cuts by costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/schedule/generators.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

// The stages of a configured pipeline, before its schedule is made. Names and traits of schedules are one table, in
// schedule/generators.h.

// The traits of pipeline.schedule; null for file:PATH and for names nobody knows.
const ScheduleTraits* traits_of(const PipelineSpec& spec);

// The PATH of "file:PATH", empty for a schedule that has a name.
std::string schedule_file(const PipelineSpec& spec);

// Stages per rank; 0 when only the file knows.
int chunks_per_rank(const PipelineSpec& spec);
// mesh.pipe x chunks_per_rank().
int num_stages(const RunSpec& spec);

inline bool is_even(const PipelineSpec& pipeline) { return pipeline.partition == "even"; }
inline bool is_measured(const PipelineSpec& pipeline) { return pipeline.partition == "measured"; }

// "3,2.5,2.5": transformer blocks of each stage. Nothing when the text is no list of numbers.
std::optional<std::vector<double>> partition_list(const std::string& text);

// As even as possible, as such a list. A remainder goes to the stages after the first, in order, then to the first,
// never to the last: the last also computes the logits, and the first keeps the most activations in flight. There is a
// block for every stage.
//
//   8 blocks on 3 stages: 3,3,2      6 on 4: 1,2,2,1      5 on 2: 3,2
std::string even_partition(int layers, int num_stages);

// The first unit (num_units() of model_shape.h) of each of `num_stages` stages, then the number of units; the embedding
// and the head come on top of the blocks, in the first and the last stage. `spec` has no problems(), and its partition
// is not "measured".
std::vector<int> stage_units(const RunSpec& spec, int num_stages);

// The list that stage_units() makes `first_unit` of.
std::string partition_text(const std::vector<int>& first_unit);

}  // namespace braid::spec
