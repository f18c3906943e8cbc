// The prediction of a run on a cluster. Times are estimates unless they are called bounds.
#pragma once

#include <cstdint>
#include <vector>

namespace braid::plan {

// The predicted peak memory of a rank, by category.

// Bytes, at the moment of the step at which their sum is largest.
struct RankMemory {
  int64_t parameters = 0;  // weights as the model computes with them
  int64_t gradients = 0;
  int64_t moments = 0;        // all that the optimizer keeps, float32 masters of narrow weights included
  int64_t activations = 0;    // saved for backward, and what backward works with
  int64_t communication = 0;  // tensors on their way between stages, weights gathered

  int64_t total() const;
  bool operator==(const RankMemory&) const = default;
};

struct MemoryPart {
  const char* name;
  int64_t RankMemory::*bytes;
};
inline constexpr MemoryPart kMemoryParts[] = {{"parameters", &RankMemory::parameters},
                                              {"gradients", &RankMemory::gradients},
                                              {"moments", &RankMemory::moments},
                                              {"activations", &RankMemory::activations},
                                              {"communication", &RankMemory::communication}};

// The parts of a step's time on its slowest rank; of communication, what computation does not hide. Their sum is the
// step.
struct StepSeconds {
  double compute = 0;   // forward, backward, recomputation
  double tensor = 0;    // exchanges of tensor and sequence ranks
  double context = 0;   // exchanges of context and expert ranks
  double pipeline = 0;  // bubbles and transfers
  double data = 0;      // exchanges of gradients and sharded parameters
  double optimizer = 0;

  double total() const;
  bool operator==(const StepSeconds&) const = default;
};

struct StepPart {
  const char* name;
  double StepSeconds::*seconds;
};
inline constexpr StepPart kStepParts[] = {{"compute", &StepSeconds::compute}, {"tensor", &StepSeconds::tensor},
                                          {"context", &StepSeconds::context}, {"pipeline", &StepSeconds::pipeline},
                                          {"data", &StepSeconds::data},       {"optimizer", &StepSeconds::optimizer}};

// The range of a step's time, as multiples of the prediction.
struct StepRange {
  double least = 1, most = 1;

  bool is_known() const { return least == 1 && most == 1; }
  bool operator==(const StepRange&) const = default;
};

struct Prediction {
  StepSeconds seconds;
  StepRange range;
  double bound_step_seconds = 0;  // a lower bound: no layout on these devices takes less
  double bubble = 0;              // idle share of the pipeline, as Summary::bubble_fraction
  double sync_bytes = 0;          // that the first rank sends in a step for gradients and sharded weights, in rings
  double tokens_per_second_per_device = 0;
  double mfu = 0;                  // operations of the model alone over what the devices could do
  std::vector<RankMemory> memory;  // of each pipeline rank; its other axes hold the same
  int64_t memory_bytes = 0;        // of a device that has the least
  int64_t offloaded_bytes = 0;     // of a node's ranks, each as the one that offloads most
  int64_t host_bytes = 0;          // that a node has for them; 0: more than they need, or nobody says
  double goodput = 1;              // share of the time that makes steps which count, failures considered

  double step_seconds() const { return seconds.total(); }
  // Returns the memory of the fullest rank.
  const RankMemory& fullest() const;
  bool fits() const;
  bool operator==(const Prediction&) const = default;
};

// Merges the predictions of two replicas of a run: the step waits for the slower one, and a pipeline rank has the
// memory of the fuller one. The bubble is the larger one.
Prediction of_both_replicas(Prediction one, Prediction other);

}  // namespace braid::plan
