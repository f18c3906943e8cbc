// Bounds, rows and the first divergence.
#include "braid/verify/verdict.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "braid/base/text.h"
#include "braid/verify/perturbation.h"

namespace braid::verify {
namespace {

// The two serial runs show one draw of rounding errors, and the layout has another one. Their largest elements differ
// by less than this factor.
constexpr double kMargin = 4;

// Returns the name with "*" for the number of the layer.
std::string of_all_layers(const std::string& name) {
  static constexpr std::string_view kLayers = "blocks.";
  const size_t at = name.find(kLayers);
  if (at == name.npos) return name;
  const size_t begin = at + kLayers.size(), end = name.find_first_not_of("0123456789", begin);
  return cat(name.substr(0, begin), "*", end == name.npos ? "" : name.substr(end));
}

bool is_of_values(Phase phase) {
  return phase == Phase::Forward || phase == Phase::Recompute || phase == Phase::Backward;
}

std::string row_name(const Place& place, const Subject& subject) {
  const bool names_op = is_of_values(place.phase) && subject.tensor != "loss" && subject.tensor != "logits";
  return of_all_layers(names_op ? subject.op : subject.tensor);
}

// Backward meets the ops in the opposite order.
auto time_of(const Place& place) {
  const int order = place.phase == Phase::Backward ? -place.subject : place.subject;
  return std::tuple(place.step, place.phase, order, place.rank);
}

void widen(Row& row, const Difference& difference, double bound) {
  const double relative = difference.relative();
  if (relative >= row.relative) {
    row.relative = relative;
    row.bound = (bound + difference.slack) / (difference.scale > 0 ? difference.scale : 1);
  }
  row.same_bits = row.same_bits && difference.same_bits;
  row.equal = row.equal && difference.excess <= bound;
}

bool is_of_params(Phase phase) {
  return phase == Phase::Start || phase == Phase::Gradients || phase == Phase::Update || phase == Phase::Weights;
}

constexpr int kNoRank = -1;

// Returns the places of parameters some of whose numbers no rank has compared, though it has others of that phase.
std::vector<Place> missing(const Differences& layout, const Differences& rounded) {
  std::map<Place, double> elements;  // of all ranks
  std::set<std::pair<int64_t, Phase>> compared;
  for (const auto& [place, difference] : layout.all()) {
    elements[{place.step, place.phase, place.subject, kNoRank}] += difference.elements;
    compared.emplace(place.step, place.phase);
  }
  std::vector<Place> all;
  for (const auto& [serial, difference] : rounded.all()) {
    const Place place{serial.step, serial.phase, serial.subject, kNoRank};
    const bool is_due = is_of_params(place.phase) && compared.contains({place.step, place.phase});
    if (is_due && elements[place] < difference.elements) all.push_back(place);
  }
  return all;
}

Divergence divergence_at(const Place& place, const Subjects& subjects) {
  const Subject& subject = subjects[place.subject];
  const bool is_backward = place.phase == Phase::Backward;
  return {place.step,
          place.phase,
          is_backward ? subject.reader : subject.op,
          is_backward ? cat("gradient of ", subject.op, " ", subject.tensor) : subject.tensor,
          {},
          0,
          0};
}

}  // namespace

double rounding_bound(const Place& place, const Difference& difference, const Differences& rounded,
                      const Subjects& subjects, DType dtype) {
  if (place.phase == Phase::Start || place.phase == Phase::Data) return 0;
  Place serial = place;
  serial.rank = 0;
  if (serial.phase == Phase::Recompute) serial.phase = Phase::Forward;
  const double own = rounding_of(dtype, subjects[place.subject].longest_sum) * difference.scale;
  return kMargin * (own + (difference.slack > 0 ? 0 : rounded.at(serial).largest));
}

double Verdict::max_relative() const {
  double largest = 0;
  for (const Row& row : rows) largest = std::max(largest, row.relative);
  return largest;
}

bool Verdict::same_bits() const {
  return std::ranges::all_of(rows, [](const Row& row) { return row.same_bits; });
}

Verdict judged(const Differences& layout, const Differences& rounded, const Subjects& subjects, DType dtype) {
  Verdict verdict;
  std::map<std::pair<Phase, std::string>, size_t> row_of;
  std::vector<std::pair<Place, double>> failed;
  std::vector<std::pair<Place, Difference>> places(layout.all().begin(), layout.all().end());
  std::ranges::stable_sort(places, {}, [](const auto& at) { return std::pair(at.first.phase, at.first.subject); });
  for (const auto& [place, difference] : places) {
    const std::string name = row_name(place, subjects[place.subject]);
    const auto [row, is_new] = row_of.try_emplace({place.phase, name}, verdict.rows.size());
    if (is_new) verdict.rows.push_back({place.phase, name});
    const double bound = rounding_bound(place, difference, rounded, subjects, dtype);
    widen(verdict.rows[row->second], difference, bound);
    if (!(difference.excess <= bound)) failed.emplace_back(place, bound);
  }
  for (const Place& place : missing(layout, rounded)) failed.emplace_back(place, 0);
  if (failed.empty()) return verdict;
  std::ranges::sort(failed, {}, [](const auto& at) { return time_of(at.first); });
  const Place first = failed.front().first;
  const Difference difference = layout.at(first);
  Divergence& divergence = verdict.first_divergence.emplace(divergence_at(first, subjects));
  divergence.relative = difference.relative();
  divergence.bound = (failed.front().second + difference.slack) / (difference.scale > 0 ? difference.scale : 1);
  for (const auto& [place, bound] : failed) {
    if (place.rank == kNoRank) continue;
    if (std::tie(place.step, place.phase, place.subject) == std::tie(first.step, first.phase, first.subject))
      divergence.ranks.push_back(place.rank);
  }
  return verdict;
}

}  // namespace braid::verify
