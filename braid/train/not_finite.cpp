// Each rank looks through its own, and the worst place of all is named.
#include "braid/train/not_finite.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "braid/base/text.h"

namespace braid::train {
namespace {

constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();

bool all_finite(const at::Tensor& values) { return at::isfinite(values.detach()).all().item<bool>(); }

// Returns the part of `param` inside `range` of the flat buffers.
at::Tensor owned_part(const param::Parameter& param, const param::OwnedRange& range, const at::Tensor& flat) {
  const int64_t begin = std::max(range.begin, param.offset);
  const int64_t end = std::max(begin, std::min(range.end, param.offset + param.num_elements()));
  return flat.narrow(0, std::min(begin - range.begin, flat.size(0)), begin < range.end ? end - begin : 0);
}

bool finite_weights(const param::ParamStore& store, const param::Parameter& param) {
  if (!store.shards_parameters()) return all_finite(param.data);
  return std::ranges::all_of(
      store.owned(), [&](const param::OwnedRange& range) { return all_finite(owned_part(param, range, range.data)); });
}

bool finite_gradient(const param::ParamStore& store, const param::Parameter& param) {
  return std::ranges::all_of(
      store.owned(), [&](const param::OwnedRange& range) { return all_finite(owned_part(param, range, range.grad)); });
}

// Places in model order: of weights 0 .. n - 1, of gradients n .. 2 n - 1 from the last parameter to the first.
int64_t worst_of(RankModel& model) {
  const optim::ParamPlaces places = optim::places_of(model.order());
  const auto num_params = static_cast<int64_t>(places.size());
  const param::ParamStore& store = model.params();
  int64_t worst = kNowhere;
  for (const param::Parameter& param : store.params()) {
    const int64_t place = places.at(param.name);
    if (!finite_weights(store, param)) worst = std::min(worst, place);
    if (!finite_gradient(store, param)) worst = std::min(worst, 2 * num_params - 1 - place);
  }
  return worst;
}

}  // namespace

std::string where_not_finite(RankModel& model) {
  const RankGroups& groups = model.groups();
  Communicator& told = *groups.step_report;
  const at::Tensor own = at::tensor({worst_of(model), int64_t{groups.world.rank()}}, at::kLong);
  const at::Tensor all = at::empty({told.size(), 2}, at::kLong);
  told.all_gather(all, own).wait_host();
  const int64_t worst = all.select(1, 0).min().item<int64_t>();
  if (worst == kNowhere) return "";
  std::vector<std::string> ranks;
  for (int rank = 0; rank < told.size(); ++rank) {
    if (all[rank][0].item<int64_t>() == worst) ranks.push_back(cat(all[rank][1].item<int64_t>()));
  }
  const auto num_params = static_cast<int64_t>(model.order().size());
  const bool weights = worst < num_params;
  const int64_t place = weights ? worst : 2 * num_params - 1 - worst;
  const std::string& layer = model.layers().names[model.layers().of_param[place]];
  return cat(weights ? "weights" : "gradients", " of ", model.order()[place], " (layer ", layer,
             ranks.size() == 1 ? ", rank " : ", ranks ", joined(ranks), ") are not finite");
}

}  // namespace braid::train
