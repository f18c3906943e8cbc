// Cuts a list of layers into stages, and finds what a pipeline must refuse before any rank starts work.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/communicator.h"
#include "braid/module/layer_list.h"
#include "braid/schedule/schedule.h"

namespace braid::modules {

// Layers [first, last). What is kept for later layers crosses a border after the flow, in the order it was stashed.
//
//   layer    0 stash a | 1         | 2 pop a         border 0|1: flow, a      stage 1 passes a on
struct StagePlan {
  int first = 0, last = 0;
  std::vector<std::string> carried_in, carried_out;
  bool operator==(const StagePlan&) const = default;
};

// Stage s has balance[s] layers; without a balance all have the same number, the first ones one more where it does not
// divide. Adds what is wrong with the balance, with names of layers (each once) and with skips to `problems`; then the
// result may be empty.
std::vector<StagePlan> plan_stages(const LayerList& layers, int num_stages, const std::vector<int>& balance,
                                   std::vector<Problem>& problems);

// Returns a problem for everything that ranks would share and must not: parameters or modules of two ranks and, where
// ranks are threads, the process-wide generator, with the modules that draw from it.
std::vector<Problem> sharing_problems(const LayerList& layers, const std::vector<StagePlan>& plan,
                                      const Schedule& schedule, RankKind ranks);

// The problem that `what`, an operation or module in `layer`, draws from the process-wide generator.
Problem drawing_problem(const Layer& layer, const std::string& what);

// Layers are run by one pipeline at a time. Throws ConfigError when another has one of them, as it would when two data
// ranks were given the same list.
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
