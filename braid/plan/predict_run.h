// The model behind `braid plan`: the time and memory that a step of a run would take on a cluster. Nothing runs and no
// file is read. The parts of a prediction come from:
//
//   compute time      rooflines (device_rates.h, block_work.h)
//   exchanges         the alpha-beta model (collectives.h)
//   pipeline          the simulator or closed forms (pipeline_outcome.h)
//   memory            formulas (braid_memory.h, activation_memory.h, model_states.h)
//   offloaded states  data_exchange.h
//   shared cores      rank_shards.h
//
// Not modelled: kernel launches by the host, fragmentation of memory, links that several groups use at once, random
// differences between the speeds of ranks, reading data.
//
// On a cluster with several kinds of devices each data rank has its own pipeline, with its stages on its devices and
// its own number of microbatches. The slowest pipeline determines the step. pipeline.partition can fit stages to the
// devices, and mesh.batch_shares can fit parts of the batch to them.
#pragma once

#include <cstdint>
#include <optional>

#include "braid/plan/cluster.h"
#include "braid/plan/formula_set.h"
#include "braid/plan/pipeline_outcome.h"
#include "braid/plan/prediction.h"
#include "braid/plan/run_layout.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// Returns a lower bound, cheap to compute, of predict_run()'s step for every schedule, ZeRO stage and cut. It divides
// the work of all stages evenly over the pipeline ranks, and no rank waits. The bound is computed for equal
// shares of the batch. It also holds for unequal ones, because some data rank then has more microbatches.
// `account`: as of layout_of().
double least_step_seconds(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas,
                          AccountPtr account = nullptr);

// Returns a lower bound, cheap to compute, of the memory of the fullest rank in predict_run(). It divides the states of
// all parameters evenly, and counts nothing else.
int64_t least_rank_bytes(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas,
                         AccountPtr account = nullptr);

struct PredictOptions {
  FormulaSet formulas = FormulaSet::Braid;
  PipelineDetail pipeline = PipelineDetail::Played;
  // The schedule to simulate instead of the run's own; null: the run's own. REQUIRES: the spec's pipeline is
  // pipeline_like(*table).
  const Schedule* table = nullptr;
  AccountPtr account = nullptr;  // that of the run's model; null: it is counted anew
};

// Returns the pipeline of a named schedule that resembles `table`, for a run whose schedule is a table. It has as many
// stages on the same ranks. It splits backward passes if the table does, and is asynchronous if the table contains
// weight updates.
// Returns nothing if there is no such schedule.
std::optional<PipelineSpec> pipeline_like(const Schedule& table);

// Returns the reasons why a run cannot be predicted on a cluster with any mesh, in addition to problems() of the run
// for Purpose::Plan: a schedule that is a file, a type without a peak, cores that are shared in some kinds only, an
// offload to a host or disk that the cluster does not describe, an unknown vocabulary.
std::vector<Problem> prediction_problems(const RunSpec& spec, const Cluster& cluster);
// Returns a problem if the run has more ranks than there are devices.
std::vector<Problem> mesh_problems(const RunSpec& spec, const Cluster& cluster);

// Predicts a run. REQUIRES: problems(), prediction_problems() and mesh_problems() of the run are empty.
Prediction predict_run(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options = {});

// Returns the range of the step's time around its prediction. There is none if braid measured the cluster's rates.
// Otherwise it is 0.9 to 2.2 of the prediction for FormulaSet::Braid. braid's kernels have not run on such devices, and
// torchtitan's published step was 2.1 times the prediction for braid on the same layout. The range is 0.8 to 1.25 for
// Megatron and torchtitan, which contains their published steps (docs/published_rows.md).
StepRange step_range(const Cluster& cluster, FormulaSet formulas);

// Returns the operations of the model for one token, forward and backward: model_flops_per_token() of
// model/model_flops.h. Under the set Megatron attention covers all tokens of the sequence, 72 l h^2 (1 + s/6h + V/12hl)
// (Korthikanti et al. 2022, section 6.3).
double model_flops_per_token(const layout::ModelAccount& account, FormulaSet formulas);

}  // namespace braid::plan
