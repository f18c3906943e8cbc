// What a configuration must know of a pipeline schedule by its name: how many stages it has, what it changes. The rooms
// do not include each other, so schedule_traits() (schedule/generators.h) says the same once more; a test of train
// holds the two tables together. It generates nothing (schedule/generators.h), and says nothing of orders.
#pragma once

#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid {

enum class UpdateRule {
  Synchronous,   // one update per step, of the gradients of the weights it changes
  Asynchronous,  // updates while microbatches are in flight: gradients are of older weights
};

struct ScheduleKind {
  std::string name;
  int chunks = 1;  // stages per rank; 0: pipeline.chunks says
  UpdateRule update = UpdateRule::Synchronous;
};

// In the order of the documentation.
const std::vector<ScheduleKind>& schedule_kinds();
std::vector<std::string> schedule_kind_names();
// Null for file:PATH and for names nobody knows.
const ScheduleKind* schedule_kind(const std::string& name);

// The PATH of "file:PATH", empty for a schedule that has a name.
std::string schedule_file(const PipelineSpec& spec);

// Stages per rank; 0 when only the file knows.
int chunks_per_rank(const PipelineSpec& spec);
// mesh.pipe x chunks_per_rank().
int num_stages(const RunSpec& spec);

}  // namespace braid
