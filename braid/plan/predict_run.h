// The model behind `braid plan`: what a step of a run would take and hold on a cluster. Nothing runs and no file is
// read. Times come from rooflines (device_rates.h, block_work.h), exchanges from the alpha-beta model (collectives.h),
// the pipeline from the simulator or closed forms (pipeline_outcome.h), memory from formulas (braid_memory.h,
// activation_memory.h, model_states.h), what is offloaded from data_exchange.h.
//
// Not modelled: what a host spends on launching kernels, memory lost to fragmentation, links that several groups use at
// once, ranks of unequal speed by chance, reading data.
//
// On a cluster of several kinds of devices each data rank has a pipeline of its own: its stages on its devices, with
// its microbatches. The step is that of the slowest. pipeline.partition may give stages in proportion,
// mesh.batch_shares parts of the batch. Ranks that share cores: rank_shards.h.
#pragma once

#include <cstdint>
#include <optional>

#include "braid/plan/cluster.h"
#include "braid/plan/formula_set.h"
#include "braid/plan/pipeline_outcome.h"
#include "braid/plan/prediction.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// Bounds of a prediction that cost little, for whoever must choose among many layouts.

// Never more than predict_run() says of the step, whatever the schedule, ZeRO's stage and the cut of the model are: the
// work of all stages shared out evenly over the ranks of pipe, and nobody ever waits. With equal shares of the batch
// also never more than with others, under which some data rank has as many microbatches.
double least_step_seconds(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas);

// Never more than predict_run() says of the fullest rank: the states of all parameters shared out evenly, and nothing
// else.
int64_t least_rank_bytes(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas);

struct PredictOptions {
  FormulaSet formulas = FormulaSet::Braid;
  PipelineDetail pipeline = PipelineDetail::Played;
  const Schedule* table = nullptr;  // played in place of the run's schedule, which is pipeline_like() it
};

// The pipeline of a run whose schedule is a table: that of a schedule with a name which has as many stages, on the same
// ranks, and splits its backward passes or not as the table does. Nothing where none has.
std::optional<PipelineSpec> pipeline_like(const Schedule& table);

// Why a run cannot be predicted on a cluster, whatever its mesh, beside problems() of the run for Purpose::Plan: a
// schedule that is a file, a type without a peak, cores that some kinds share and others do not, an offload to what the
// cluster does not say it has, a vocabulary that nobody knows.
std::vector<Problem> prediction_problems(const RunSpec& spec, const Cluster& cluster);
// That it has more ranks than there are devices.
std::vector<Problem> mesh_problems(const RunSpec& spec, const Cluster& cluster);

// `spec` has none of these problems.
Prediction predict_run(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options = {});

// None where the cluster's rates were measured by braid. Else of the set Braid 0.9 to 2.2, since braid's kernels have
// not run on such devices: torchtitan took 2.1 times what braid was predicted to take on the same layout. Of Megatron
// and torchtitan 0.8 to 1.25: published steps are within that (docs/published_rows.md).
StepRange step_range(const Cluster& cluster, FormulaSet formulas);

// Operations of the model for one token, forward and backward: model_flops_per_token() (spec/model_flops.h), under the
// set Megatron with attention to all tokens of the sequence, 72 l h^2 (1 + s/6h + V/12hl) (Korthikanti et al. 2022,
// section 6.3).
double model_flops_per_token(const ModelSpec& model, FormulaSet formulas);

}  // namespace braid::plan
