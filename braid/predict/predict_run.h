// The model behind `braid plan`: what a step of a run would take and hold on a cluster. Nothing runs and no file is
// read. Times come from rooflines (device_rates.h, block_work.h), exchanges from the alpha-beta model (collectives.h),
// the pipeline from the simulator or closed forms (pipeline_outcome.h), memory from formulas (braid_memory.h,
// activation_memory.h, model_states.h), what is offloaded from offload.h.
//
// Not modelled: what a host spends on launching kernels, memory lost to fragmentation, links that several groups use at
// once, ranks of unequal speed by chance, reading data.
//
// On a cluster of several kinds of devices each data rank has a pipeline of its own: its stages on its devices, with
// its microbatches. The step is that of the slowest. pipeline.partition may give stages in proportion,
// mesh.batch_shares parts of the batch. Ranks that share cores: cores_of_ranks.h.
#pragma once

#include "braid/cluster/cluster.h"
#include "braid/predict/formula_set.h"
#include "braid/predict/pipeline_outcome.h"
#include "braid/predict/prediction.h"
#include "braid/spec/run_spec.h"

namespace braid {

struct PredictOptions {
  FormulaSet formulas = FormulaSet::Braid;
  PipelineDetail pipeline = PipelineDetail::Played;
};

// Why a run cannot be predicted on a cluster, whatever its mesh, beside problems() of the run for Purpose::Plan: a
// schedule that is a file, a type without a peak, cores that some kinds share and others do not, an offload to what the
// cluster does not say it has, a vocabulary that nobody knows.
std::vector<Problem> prediction_problems(const RunSpec& spec, const Cluster& cluster);
// That it has more ranks than there are devices.
std::vector<Problem> mesh_problems(const RunSpec& spec, const Cluster& cluster);

// `spec` has none of these problems.
Prediction predict_run(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options = {});

// Operations of the model for one token, forward and backward: model_flops_per_token() (spec/model_flops.h), under the
// set Megatron with attention to all tokens of the sequence, 72 l h^2 (1 + s/6h + V/12hl) (Korthikanti et al. 2022,
// section 6.3).
double model_flops_per_token(const ModelSpec& model, FormulaSet formulas);

}  // namespace braid
