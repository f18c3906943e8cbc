// Gives every parameter of an optimizer its elements of the states, one parameter after another.
#include "braid/module/state_places.h"

#include <torch/optim/optimizer.h>

#include <set>
#include <utility>

#include "braid/base/text.h"
#include "braid/module/torch_state.h"
#include "braid/param/flat_data.h"

namespace braid::modules {
namespace {

// Elements at which a parameter begins in the states: torch's vector loops meet the same elements as in the whole.
constexpr int64_t kPlaceAlign = 64;

int64_t round_up(int64_t number, int64_t step) { return (number + step - 1) / step * step; }

}  // namespace

std::vector<StatePlace> places_of(torch::optim::Optimizer& optimizer) {
  std::vector<StatePlace> places;
  int64_t next = 0;
  for (size_t group = 0; group < optimizer.param_groups().size(); ++group) {
    for (const at::Tensor& parameter : optimizer.param_groups()[group].params()) {
      places.push_back({parameter, group, next, parameter.scalar_type()});
      next = round_up(places.back().end(), kPlaceAlign);
    }
  }
  return places;
}

int64_t num_elements(const std::vector<StatePlace>& places) {
  return places.empty() ? 0 : round_up(places.back().end(), param::kSliceAlign);
}

std::vector<Problem> problems_of(const std::vector<StatePlace>& places, const torch::optim::Optimizer& optimizer) {
  if (places.empty()) return {{"optimizer", "", "must have parameters", ""}};
  std::vector<Problem> problems;
  if (!is_torchs_own(optimizer)) {
    problems.push_back({"optimizer", "a class derived from torch's",
                        "must be of torch's class itself, because it is given parts of the parameters", ""});
  }
  std::set<const void*> seen;
  for (size_t i = 0; i < places.size(); ++i) {
    const at::Tensor& parameter = places[i].parameter;
    const auto refuse = [&](std::string rule) {
      problems.push_back(
          {cat("parameters.", i), cat(parameter.scalar_type(), " ", parameter.sizes()), std::move(rule), ""});
    };
    if (!parameter.is_cpu()) refuse("must be on the CPU");
    if (!parameter.is_non_overlapping_and_dense()) refuse("must have no gaps between its elements");
    if (parameter.scalar_type() != places[0].parameter.scalar_type())
      refuse("must have the type of the first parameter");
    if (!seen.insert(parameter.unsafeGetTensorImpl()).second) refuse("must be in the optimizer once");
  }
  return problems;
}

}  // namespace braid::modules
