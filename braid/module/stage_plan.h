// Cuts a list of layers into stages, and finds the problems for which a pipeline is refused before any rank starts
// work.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/communicator.h"
#include "braid/module/layer_list.h"
#include "braid/schedule/schedule.h"

namespace braid::modules {

// One stage: layers [first, last). Stashed tensors cross a border after the flow, in the order in which they were
// stashed.
//
//   layer    0 stash a | 1         | 2 pop a         border 0|1: flow, a      stage 1 passes a on
struct StagePlan {
  int first = 0, last = 0;
  std::vector<std::string> carried_in, carried_out;
  bool operator==(const StagePlan&) const = default;
};

// Returns the plan of each stage. Stage s has balance[s] layers. If `balance` is empty, all stages have equally many;
// if the number does not divide, the first ones have one more. Adds the problems of the balance, of layer names that
// are not unique, and of stash and pop to `problems`. Then the result is empty.
std::vector<StagePlan> plan_stages(const LayerList& layers, int num_stages, const std::vector<int>& balance,
                                   std::vector<Problem>& problems);

// Returns a problem for everything that ranks must not share: parameters or modules of two ranks and, if ranks are
// threads, modules that draw from the process-wide generator.
std::vector<Problem> sharing_problems(const LayerList& layers, const std::vector<StagePlan>& plan,
                                      const Schedule& schedule, RankKind ranks);

// Returns the problem of `what`, an operation or module in `layer` that draws from the process-wide generator.
Problem drawing_problem(const Layer& layer, const std::string& what);

// A pipeline's claim on its layers, which only one pipeline may run at a time. Throws ConfigError if another pipeline
// has one of them, for example if two data ranks were given the same list.
class LayerClaim {
 public:
  LayerClaim(const LayerList& layers, const std::vector<StagePlan>& stages);
  ~LayerClaim();
  LayerClaim(const LayerClaim&) = delete;
  LayerClaim& operator=(const LayerClaim&) = delete;

 private:
  std::vector<std::shared_ptr<std::atomic<bool>>> held_;
};

}  // namespace braid::modules
