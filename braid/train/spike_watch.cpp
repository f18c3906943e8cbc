// Means and deviations.
#include "braid/train/spike_watch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/base/text.h"

namespace braid::train {
namespace {

// Without the sign that a NaN has too.
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
