// Running means and deviations, and the search for values that are not finite.
#include "braid/train/spike_watch.h"

#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "braid/base/text.h"
#include "braid/comm/agree.h"

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

// Returns the first place with a value that is not finite, or kNowhere. Weights have the places 0 .. n - 1 in model
// order. Gradients have n .. 2 n - 1, from the last parameter to the first.
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
  const Groups& groups = model.groups();
  struct Found {
    int64_t place;
    int rank;
  };
  const auto all =
      comm::gather(*groups.step_report, "values that are not finite", Found{worst_of(model), groups.world.rank()});
  const int64_t worst = std::ranges::min(all, {}, &Found::place).place;
  if (worst == kNowhere) return "";
  std::vector<std::string> ranks;
  for (const Found& found : all) {
    if (found.place == worst) ranks.push_back(cat(found.rank));
  }
  const auto num_params = static_cast<int64_t>(model.order().size());
  const bool weights = worst < num_params;
  const int64_t place = weights ? worst : 2 * num_params - 1 - worst;
  const std::string& layer = model.layers().names[model.layers().of_param[place]];
  return cat(weights ? "weights" : "gradients", " of ", model.order()[place], " (layer ", layer,
             ranks.size() == 1 ? ", rank " : ", ranks ", joined(ranks), ") are not finite");
}

namespace {

// Writes a NaN without its sign.
std::string number_text(double value) { return std::isnan(value) ? "nan" : cat(value); }

double log_of(double norm) { return std::log(std::max(norm, std::numeric_limits<double>::min())); }

}  // namespace

void RunningSpread::add(double value) {
  count = std::min(count + 1, kWindow);
  const double share = 1.0 / static_cast<double>(count), before = value - mean;
  mean += share * before;
  variance += share * (before * (value - mean) - variance);
}

double RunningSpread::deviations(double value) const { return (value - mean) / std::max(std::sqrt(variance), kLeast); }

std::string SpikeWatch::spike(double loss, double grad_norm) const {
  if (!std::isfinite(loss) || !std::isfinite(grad_norm)) {
    return cat("loss ", number_text(loss), ", gradient norm ", number_text(grad_norm), ": not finite");
  }
  if (threshold_ == 0 || loss_.count < kFewest) return "";
  const auto text = [](const std::string& what, double deviations, double mean) {
    return cat(what, " above its running mean of ", fixed(mean, 4), " by ", fixed(deviations, 1),
               " standard deviations");
  };
  const double of_loss = loss_.deviations(loss), of_norm = log_norm_.deviations(log_of(grad_norm));
  if (of_loss > threshold_) return text(cat("loss ", fixed(loss, 4)), of_loss, loss_.mean);
  if (of_norm > threshold_) {
    return text(cat("gradient norm ", fixed(grad_norm, 4)), of_norm, std::exp(log_norm_.mean));
  }
  return "";
}

void SpikeWatch::updated(double loss, double grad_norm) {
  num_skipped_ = 0;
  if (threshold_ == 0) return;
  loss_.add(loss);
  log_norm_.add(log_of(grad_norm));
}

template <class Visit>
void SpikeWatch::visit(SpikeWatch& watch, const Visit& visit) {
  visit("spike_num_seen", watch.loss_.count);
  visit("spike_loss_mean", watch.loss_.mean);
  visit("spike_loss_variance", watch.loss_.variance);
  visit("spike_log_norm_mean", watch.log_norm_.mean);
  visit("spike_log_norm_variance", watch.log_norm_.variance);
  visit("spike_num_skipped", watch.num_skipped_);
}

std::map<std::string, double> SpikeWatch::counters() const {
  std::map<std::string, double> counters;
  SpikeWatch copy = *this;
  visit(copy, [&](const char* name, auto& value) {
    if (value != 0) counters[name] = static_cast<double>(value);
  });
  return counters;
}

void SpikeWatch::restore(const std::map<std::string, double>& counters) {
  visit(*this, [&](const char* name, auto& value) {
    const auto found = counters.find(name);
    value = static_cast<std::remove_reference_t<decltype(value)>>(found == counters.end() ? 0 : found->second);
  });
  log_norm_.count = loss_.count;
}

}  // namespace braid::train
