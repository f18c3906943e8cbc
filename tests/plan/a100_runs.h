// A cluster and a model that tests of predictions share.
#pragma once

#include "braid/plan/cluster_presets.h"
#include "braid/spec/run_spec.h"

namespace braid {

// Nodes of eight A100s.
inline plan::Cluster a100_nodes(int count) {
  plan::Cluster cluster = plan::cluster_preset("dgx-a100-80gb").value();
  cluster.devices.front().nodes = count;
  return cluster;
}

// 7B on one of them.
inline RunSpec llama_7b() {
  RunSpec run;
  run.model.family = ModelFamily::Llama;
  run.model.layers = 32;
  run.model.heads = 32;
  run.model.width = 4096;
  run.model.ffn = 11008;
  run.model.context = 4096;
  run.model.vocab = 32000;
  run.train.batch = 64;
  run.train.microbatch = 1;
  run.train.dtype = DType::BFloat16;
  run.mesh.data = 8;
  return run;
}

}  // namespace braid
