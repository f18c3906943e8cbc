// The combinations of features: the one table of pairs that are refused or that change semantics together, for
// configured runs and for programs with their own torch modules. Features are on or off here; rules about their values
// are in problems.h, and those of programs in module/refused_options.h.
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
  VShapedPipeline,       // two stages per rank, there and back: zb-v
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
  SegmentRecompute,      // memory.recompute "full" or "every:K" on some stage
  Offload,               // memory.offload is not "none"
  Data,                  // mesh.data > 1
  UnequalShares,         // mesh.batch_shares is not "equal"
  Context,               // mesh.context > 1
  Expert,                // mesh.expert > 1
  Tensor,                // mesh.tensor > 1
  SequenceParallel,      // mesh.sequence_parallel
  Reproducible,          // train.reduction "reproducible"
  Nodes,                 // mesh.ranks_per_node > 0
  Compression,           // sync.compression is not "none"
  ShardedOptimizer,      // sync.zero 1
  ShardedGradients,      // sync.zero 2
  ShardedParameters,     // sync.zero 3
  LocalUpdates,          // sync.replication "local-sgd" or "diloco"
  ParameterServers,      // sync.replication "parameter-server"
  MatrixUpdates,         // optimizer.kind "muon"
  RatesByName,           // optimizer.groups is not empty
  ProcessRanks,          // run.ranks "processes"
  UserModules,           // no key: a program's own torch modules, kept in step on data ranks
  UserPipeline,          // no key: a program's own torch modules as a pipeline
};
inline constexpr int kNumFeatures = static_cast<int>(Feature::UserPipeline) + 1;

// NotBuilt: nobody trains that way as yet, but it may be planned.
enum class Verdict { Supported, Refused, NotBuilt, ChangesSemantics };
// The purpose that a run is validated for.
enum class Purpose { Train, Plan };
bool refused(Verdict verdict, Purpose purpose = Purpose::Train);

struct Combination {
  Feature a, b;  // equal: the feature by itself
  Verdict verdict;
  std::string why;  // why it is refused, or how it changes semantics; empty where it is supported
};

// "1F1B pipeline".
std::string text(Feature feature);
// The key that switches it, "mesh.pipe"; empty when no configuration does.
std::string key(Feature feature);

// The kind of pipeline that a schedule of these traits is: one from FlushPipeline to AsynchronousPipeline. Rows of the
// table are about kinds, so every schedule has the verdicts of its kind.
Feature pipeline_kind(const ScheduleTraits& traits);

// Returns the features that a schedule has by its actions, whatever its name: bidirectional, asynchronous, recomputing.
std::vector<Feature> features_of(const Schedule& schedule);

// The rows of the table: what is refused or changes semantics. Every other pair is supported.
const std::vector<Combination>& combinations();
// The verdict on a pair, in either order. Pipelines of two kinds are never on together.
Combination combination(Feature a, Feature b);

// The features of a run that are on.
std::vector<Feature> features(const RunSpec& spec);
// Returns one sentence for each combination of the run that changes semantics.
std::vector<std::string> notes(const RunSpec& spec);

}  // namespace braid::spec
