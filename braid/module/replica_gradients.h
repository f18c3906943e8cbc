// Sums the gradients of a step over data ranks, a stage as soon as its gradients are complete. What a parameter's .grad
// held before the step is set aside and added afterwards: gradients accumulate over steps as with one rank.
#pragma once

#include <map>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/module_stage.h"

namespace braid {

class ReplicaGradients {
 public:
  // Both outlive this. With one data rank nothing is done.
  ReplicaGradients(const std::map<int, ModuleStage>& stages, Communicator& data);

  // Makes the modules of all data ranks those of rank 0: parameters and buffers.
  void broadcast_state();

  void begin_step();
  void reduce(int stage);
  void finish();

  const Tensors& parameters() const { return parameters_; }  // this rank's, each once

 private:
  const std::map<int, ModuleStage>& stages_;
  Communicator& data_;
  Tensors parameters_;
  std::vector<int> num_stages_of_;             // how many stages use a parameter: tied ones are reduced after the last
  std::map<int, std::vector<size_t>> places_;  // of a stage's parameters in the list above
  std::vector<int> open_;                      // stages still to come, of each parameter
  Tensors set_aside_;
  std::vector<Work> reductions_;
};

}  // namespace braid
