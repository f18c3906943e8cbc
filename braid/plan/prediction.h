// The prediction of a run on a cluster. Times are estimates unless they are called bounds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid::plan {

// The predicted peak memory of a rank in bytes, by category. The values are those of the moment when their sum is
// largest.
struct RankMemory {
  int64_t parameters = 0;  // weights in the type in which the model computes; of those on disk, what is in memory
  int64_t gradients = 0;
  int64_t moments = 0;        // all states of the optimizer, with float32 masters of 16-bit weights
  int64_t activations = 0;    // saved for backward, and working memory of backward
  int64_t communication = 0;  // tensors in transit between stages, gathered weights
  int64_t snapshots = 0;      // copies of what is saved while training continues (checkpoint.async)

  int64_t total() const;
  // Returns the parts that are not 0, each as "moments 8.6 GiB".
  std::vector<std::string> parts_text() const;
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
                                              {"communication", &RankMemory::communication},
                                              {"snapshots", &RankMemory::snapshots}};

// The parts of a step's time on its slowest rank. Their sum is the step's time. Only communication that computation
// does not hide counts.
struct StepSeconds {
  double compute = 0;   // forward, backward, recomputation
  double tensor = 0;    // exchanges of tensor ranks, including those of sequence parallelism
  double context = 0;   // exchanges of context and expert ranks
  double pipeline = 0;  // bubbles and transfers between stages
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
  double bound_step_seconds = 0;  // lower bound: no layout on these devices takes less
  double bubble = 0;              // idle fraction of the busiest pipeline rank (Summary::bubble_fraction)
  double sync_bytes = 0;          // gradients and sharded weights that rank 0 sends in a step, by ring algorithms
  double disk_bytes = 0;          // bytes that rank 0 reads from its disks and writes to them in a step
  double tokens_per_second_per_device = 0;
  double mfu = 0;                  // model operations, without recomputation, over the devices' peak
  std::vector<RankMemory> memory;  // memory of each pipeline rank; the same along all other axes
  int64_t server_bytes = 0;        // memory of each parameter server that is a rank of its own; 0: there is none
  int64_t server_limit_bytes = 0;  // limit of server_bytes if ranks share a host's memory; 0: no limit
  int64_t memory_bytes = 0;        // usable memory of the smallest device
  int64_t offloaded_bytes = 0;     // of a node in host memory or, if there are none, on disk, if each rank has as many
                                   // as the largest
  int64_t host_bytes = 0;          // limit of offloaded_bytes: host memory of a node; 0: no limit
  double goodput = 1;              // fraction of the time that is spent on steps that no failure undoes

  double step_seconds() const { return seconds.total(); }
  // Returns the memory of the fullest rank of the mesh.
  const RankMemory& fullest() const;
  // Returns the bytes of the fullest rank, servers included.
  int64_t most_bytes() const;
  bool servers_fit() const { return server_limit_bytes == 0 || server_bytes <= server_limit_bytes; }
  bool fits() const;  // ranks, servers and what is offloaded
  bool operator==(const Prediction&) const = default;
};

// Merges the predictions of two replicas of a run. Takes the step of the slower one, the larger memory of each pipeline
// rank, and the larger bubble.
Prediction of_both_replicas(Prediction one, Prediction other);

}  // namespace braid::plan
