// Three collectives that are under way at the same time.
#include "braid/train/step_exchange.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include <numeric>
#include <span>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/optim/grad_norm.h"

namespace braid::train {
namespace {

// Numbers of several kinds, added up over ranks by one collective: parts of one buffer, of which each keeps its place.
class RankSums {
 public:
  struct Part {
    size_t begin = 0, count = 0;
  };
  // This rank's numbers of one kind. All ranks add parts of the same sizes in the same order, before start().
  Part add(const std::vector<double>& own);
  // Returns before the others have arrived. Collective over `ranks`, which lives until finish(). start() and finish()
  // are each called once.
  void start(Communicator& ranks);
  void finish() { work_.wait_host(); }
  // After finish(): the sums over all ranks, number by number, in the Communicator's fixed order. Valid as long as
  // this object.
  std::span<const double> of(Part part) const;

 private:
  std::vector<double> own_;
  at::Tensor sums_;  // from start() on
  Work work_;
};

RankSums::Part RankSums::add(const std::vector<double>& own) {
  const Part part{own_.size(), own.size()};
  own_.insert(own_.end(), own.begin(), own.end());
  return part;
}

void RankSums::start(Communicator& ranks) {
  sums_ = at::tensor(own_, at::kDouble);
  work_ = ranks.all_reduce(sums_, ReduceOp::Sum);
}

std::span<const double> RankSums::of(Part part) const {
  return std::span(sums_.const_data_ptr<double>(), own_.size()).subspan(part.begin, part.count);
}

using Parts = std::map<std::string, RankSums::Part>;  // by name, the same ones on all ranks

double total(std::span<const double> numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }
double mean(std::span<const double> numbers) { return total(numbers) / static_cast<double>(numbers.size()); }

// A hash in halves, of which sums over any number of ranks are exact.
constexpr int kHalf = 32;
std::vector<double> halves(uint64_t hash) {
  return {static_cast<double>(hash & ((uint64_t{1} << kHalf) - 1)), static_cast<double>(hash >> kHalf)};
}
uint64_t from_halves(std::span<const double> sums) {
  return static_cast<uint64_t>(sums[0]) + (static_cast<uint64_t>(sums[1]) << kHalf);
}

Parts added(RankSums& sums, const std::map<std::string, std::vector<double>>& own) {
  Parts parts;
  for (const auto& [name, numbers] : own) parts[name] = sums.add(numbers);
  return parts;
}

std::vector<double> by_layer(const ModelLayers& layers, std::span<const double> by_param) {
  std::vector<double> sums(layers.names.size());
  for (size_t p = 0; p < by_param.size(); ++p) sums[layers.of_param[p]] += by_param[p];
  return sums;
}

optim::GradNormExchange started_norm(RankModel& model) {
  const auto counts = [&](const param::Parameter& param) { return model.counts(param); };
  return {model.params(), model.order(), counts, model.norm_groups()};
}

// A rank's numbers that are all-reduced.
class Summed {
 public:
  // `own_squares`: of this rank's norm, by layer.
  Summed(const RankReport& own, double own_norm, const std::vector<double>& own_squares)
      : losses_(sums_.add(own.losses)),
        squares_(sums_.add({own_norm * own_norm})),
        layer_squares_(sums_.add(own_squares)),
        hash_(sums_.add(halves(own.sample_hash))),
        auxiliary_losses_(added(sums_, own.auxiliaries.losses)),
        auxiliary_counts_(added(sums_, own.auxiliaries.counts)) {}

  void start(Communicator& told) { sums_.start(told); }
  void finish(StepTotals& numbers) {
    sums_.finish();
    const auto losses = sums_.of(losses_), squares = sums_.of(layer_squares_);
    numbers.losses.assign(losses.begin(), losses.end());
    numbers.all_layer_squares.assign(squares.begin(), squares.end());
    numbers.loss = mean(losses);
    numbers.squares = sums_.of(squares_)[0];
    numbers.sample_hash = from_halves(sums_.of(hash_));
    for (const auto& [name, part] : auxiliary_losses_) numbers.auxiliary_losses[name] = mean(sums_.of(part));
    for (const auto& [name, part] : auxiliary_counts_) {
      const auto counts = sums_.of(part);
      numbers.auxiliary_counts[name].assign(counts.begin(), counts.end());
    }
  }

 private:
  RankSums sums_;
  RankSums::Part losses_, squares_, layer_squares_, hash_;
  Parts auxiliary_losses_, auxiliary_counts_;
};

}  // namespace

double total_loss(const std::vector<double>& losses, Communicator& world) {
  RankSums sums;
  const RankSums::Part all = sums.add(losses);
  sums.start(world);
  sums.finish();
  return total(sums.of(all));
}

StepTotals exchanged(RankModel& model, const RankReport& own) {
  Communicator& told = *model.groups().step_report;
  optim::GradNormExchange norm = started_norm(model);
  RowsInFlight rows = start_gathering(own.row, told);
  Summed summed(own, norm.own(), by_layer(model.layers(), norm.own_squares()));
  summed.start(told);

  StepTotals numbers;
  summed.finish(numbers);
  numbers.grad_norm = norm.finish();
  numbers.layer_squares = by_layer(model.layers(), norm.squares());
  numbers.rows = finish_gathering(rows);
  return numbers;
}

}  // namespace braid::train
