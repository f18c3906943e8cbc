// The table of feature pairs that are refused or that change semantics together. It covers configured runs and programs
// with their own torch modules. A feature is either on or off. Rules about values are in cross_rules.h, and those
// of programs in module/refused_options.h.
#pragma once

#include <string>
#include <vector>

#include "braid/schedule/generators.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

enum class Feature {
  FlushPipeline,         // one stage per rank, full backwards: gpipe, 1f1b
  ChunkedPipeline,       // several stages per rank in a loop, full backwards: interleaved
  ZeroBubblePipeline,    // weight gradients are deferred: zb-h1, interleaved-zb
  VShapedPipeline,       // two stages per rank in a V: zb-v
  MirroredPipeline,      // every stage on two ranks: dualpipe
  TablePipeline,         // file:PATH
  AsynchronousPipeline,  // updates within the step: pipedream
  TiedEmbedding,         // model.output_weights "tied"
  Clipping,              // optimizer.clip_norm > 0
  Dropout,               // model.dropout > 0
  Experts,               // model.experts > 0
  DocumentAttention,     // data.attention "document"
  LossScaling,           // train.dtype "float16"
  NarrowWeights,         // train.dtype "bfloat16" or "float16"
  SelectiveRecompute,    // memory.recompute "selective" on some stage
  SegmentRecompute,      // memory.recompute "full", "every:K" or "blocks:LIST" on some stage
  HostOptimizer,         // memory.optimizer "host"
  DiskOptimizer,         // memory.optimizer "disk"
  HostGradients,         // memory.gradients "host"
  DiskGradients,         // memory.gradients "disk"
  HostParameters,        // memory.parameters "host"
  DiskParameters,        // memory.parameters "disk"
  HostActivations,       // memory.activations "host"
  DiskActivations,       // memory.activations "disk"
  Data,                  // mesh.data > 1
  UnequalShares,         // mesh.batch_shares is not "equal"
  Context,               // mesh.context > 1
  Expert,                // mesh.expert > 1
  Tensor,                // mesh.tensor > 1
  CopiedKeyHeads,        // mesh.tensor > model.kv_heads
  SequenceParallel,      // mesh.sequence_parallel
  Reproducible,          // train.reduction "reproducible"
  Compression,           // sync.compression is not "none"
  ShardedOptimizer,      // sync.zero 1
  ShardedGradients,      // sync.zero 2
  ShardedParameters,     // sync.zero 3
  LocalUpdates,          // sync.replication "local-sgd" or "diloco"
  ParameterServers,      // sync.replication "parameter-server"
  MatrixUpdates,         // optimizer.kind "muon"
  RatesByName,           // optimizer.groups is not empty
  NarrowStates,          // optimizer.state_dtype "bfloat16" or "int8"
  ProcessRanks,          // run.ranks "processes"
  UserModules,           // no key: data parallelism of a program's own torch modules
  UserPipeline,          // no key: a program's own torch modules as a pipeline
};
inline constexpr int kNumFeatures = static_cast<int>(Feature::UserPipeline) + 1;

// NotBuilt: training is not implemented, so it is refused; planning is allowed.
enum class Verdict { Supported, Refused, NotBuilt, ChangesSemantics };
// The purpose that a run is validated for.
enum class Purpose { Train, Plan };
bool refused(Verdict verdict, Purpose purpose = Purpose::Train);

struct Combination {
  Feature a, b;  // equal: the feature by itself
  Verdict verdict;
  std::string why;  // why the pair is refused, or how it changes semantics; empty if it is supported
};

// Returns the feature's name in messages, such as "gradient clipping".
std::string text(Feature feature);
// Returns the key that turns the feature on, such as "mesh.data"; empty if no key does.
std::string key(Feature feature);

// Returns the kind of pipeline of a schedule with these traits, from FlushPipeline to AsynchronousPipeline. The rows of
// the table name kinds, so a schedule has the verdicts of its kind.
Feature pipeline_kind(const ScheduleTraits& traits);

// Returns the features that the schedule's actions show, whatever its name is: a bidirectional or asynchronous
// pipeline, and recomputation.
std::vector<Feature> features_of(const Schedule& schedule);

// Returns the rows of the table. Pairs without a row are supported.
const std::vector<Combination>& combinations();
// Returns the verdict on a pair, whose order does not matter. Two kinds of pipeline are never on together.
Combination combination(Feature a, Feature b);

// Returns the features that are on in a run.
std::vector<Feature> features(const RunSpec& spec);
// Returns one sentence for each combination of the run that changes semantics.
std::vector<std::string> notes(const RunSpec& spec);

}  // namespace braid::spec
