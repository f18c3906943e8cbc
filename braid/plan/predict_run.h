// The model behind `braid plan`: the time and memory that a step of a run would take on a cluster. Nothing runs and no
// file is read. The parts of a prediction come from:
//
//   compute time      rooflines (device_rates.h, block_work.h)
//   exchanges         the alpha-beta model (collectives.h)
//   pipeline          the simulator or closed forms (pipeline_outcome.h)
//   memory            formulas (braid_memory.h, activation_memory.h, model_states.h)
//   moves to tiers    step_moves.h
//   CPU hosts         ranks that share cores (rank_shards.h)
//
// Not modelled: kernel launches by the host, fragmentation of memory, links that several groups use at once, random
// differences between the speeds of ranks, reading data.
//
// On a cluster with several kinds of devices, the pipelines of the data ranks are predicted one by one, because their
// devices differ. The slowest pipeline determines the step. To balance them, pipeline.partition can give fewer blocks
// to slow devices, and mesh.batch_shares fewer microbatches to slow data ranks.
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

// Returns a cheap lower bound on predict_run()'s step time for every schedule, ZeRO stage and cut. It divides the work
// of all stages evenly over the pipeline ranks, and no rank waits. It is computed for the data rank with the most
// microbatches. If `spec` has equal mesh.batch_shares, the bound also holds for unequal ones, because some data rank
// then has more microbatches.
// `account`: as of layout_of().
double least_step_seconds(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas,
                          AccountPtr account = nullptr);

// Returns a cheap lower bound on the memory of the fullest rank in predict_run(). It divides the model states evenly
// over the pipeline ranks, and counts nothing else.
int64_t least_rank_bytes(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas,
                         AccountPtr account = nullptr);

struct PredictOptions {
  FormulaSet formulas = FormulaSet::Braid;
  PipelineDetail pipeline = PipelineDetail::Played;
  // The schedule to simulate, for a run whose schedule is not a named one; null: the run's own. REQUIRES: the spec's
  // pipeline is pipeline_like(*table).
  const Schedule* table = nullptr;
  AccountPtr account = nullptr;             // that of the run's model; null: it is counted anew
  KeptOutcome kept = KeptOutcome::Numbers;  // Timeline: PipelinedRun::steps() returns the predicted step
};

// Returns the pipeline of a named schedule that resembles `table`, for a run whose schedule is a file. It has the same
// stages on the same ranks. It splits backward passes if the table does, and is asynchronous if the table contains
// weight updates. Returns nothing if there is no such schedule.
std::optional<PipelineSpec> pipeline_like(const Schedule& table);

// Returns the reasons why a run cannot be predicted on a cluster with any mesh, in addition to problems()
// (spec/problems.h) of the run for Purpose::Plan: a schedule that is a file; a train.dtype for which a device has no
// peak; a mix of CPU hosts (DeviceGroup::shared_cores) and other devices; memory.optimizer to host memory or a disk
// that the cluster does not describe; an unknown model.vocab.
std::vector<Problem> prediction_problems(const RunSpec& spec, const Cluster& cluster);
// Returns a problem if the run has more ranks than there are devices. There is none on CPU hosts, where ranks may share
// cores.
std::vector<Problem> mesh_problems(const RunSpec& spec, const Cluster& cluster);

// Predicts a run. REQUIRES: problems(), prediction_problems() and mesh_problems() of the run are empty.
Prediction predict_run(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options = {});

// Returns the range in which the step's time should lie, as multiples of its prediction. It is 1 to 1 if braid measured
// the cluster's rates. Otherwise it is 0.9 to 2.2 for FormulaSet::Braid: braid's kernels have not run on such devices,
// and torchtitan's published step was 2.1 times the prediction for braid on the same layout. For Megatron and
// torchtitan it is 0.8 to 1.25, which contains their published steps (docs/published_rows.md).
StepRange step_range(const Cluster& cluster, FormulaSet formulas);

// Returns the operations of the model for one token, forward and backward: model_flops_per_token() of
// model/model_flops.h. Under FormulaSet::Megatron attention counts all tokens of the sequence, not only the visible
// ones: 72 l h^2 (1 + s/6h + V/12hl) (Korthikanti et al. 2022, section 6.3).
double model_flops_per_token(const layout::ModelAccount& account, FormulaSet formulas);

}  // namespace braid::plan
