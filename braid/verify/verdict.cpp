// Bounds, rows and the first divergence.
#include "braid/verify/verdict.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "braid/base/text.h"

namespace braid::verify {
namespace {

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

bool explains(double bound, const Difference& difference) { return difference.worst.excess() <= bound; }

// Returns the number that shows the difference: one that rounding does not explain, or the largest.
const Difference::Number& shown(const Difference& difference, double bound) {
  return explains(bound, difference) ? difference.largest : difference.worst;
}

void widen(Row& row, const Difference& difference, double bound) {
  const Difference::Number& number = shown(difference, bound);
  const bool is_equal = explains(bound, difference);
  const double relative = difference.relative(number.difference);
  if (is_equal == row.equal ? relative >= row.relative : row.equal) {
    row.relative = relative;
    row.bound = difference.relative(bound + number.slack);
  }
  row.same_bits = row.same_bits && difference.same_bits;
  row.equal = row.equal && is_equal;
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

// A tensor that differs by more than its bound.
struct Failure {
  Place place;
  Difference difference;
  double bound = 0;
};

Divergence first_of(std::vector<Failure> failures, const Subjects& subjects) {
  std::ranges::sort(failures, {}, [](const Failure& failure) { return time_of(failure.place); });
  const auto& [place, difference, bound] = failures.front();
  const Subject& subject = subjects[place.subject];
  const bool is_backward = place.phase == Phase::Backward;
  Divergence first{.step = place.step,
                   .phase = place.phase,
                   .op = is_backward ? subject.reader : subject.op,
                   .tensor = is_backward ? cat("gradient of ", subject.op, " ", subject.tensor) : subject.tensor,
                   .ranks = {},
                   .relative = difference.relative(difference.worst.difference),
                   .bound = difference.relative(bound + difference.worst.slack)};
  for (const Failure& other : failures) {
    const Place& at = other.place;
    const bool is_same = std::tie(at.step, at.phase, at.subject) == std::tie(place.step, place.phase, place.subject);
    if (is_same && at.rank != kNoRank) first.ranks.push_back(at.rank);
  }
  return first;
}

std::vector<std::pair<Place, Difference>> in_order_of_rows(const Differences& layout) {
  std::vector<std::pair<Place, Difference>> all(layout.all().begin(), layout.all().end());
  std::ranges::stable_sort(all, {}, [](const auto& at) { return std::pair(at.first.phase, at.first.subject); });
  return all;
}

}  // namespace

double Verdict::max_relative() const {
  double largest = 0;
  for (const Row& row : rows) largest = std::max(largest, row.relative);
  return largest;
}

bool Verdict::same_bits() const {
  return std::ranges::all_of(rows, [](const Row& row) { return row.same_bits; });
}

Verdict judged(const Differences& layout, const Rounding& rounding) {
  Verdict verdict;
  std::vector<Failure> failures;
  std::map<std::pair<Phase, std::string>, size_t> row_of;
  for (const auto& [place, difference] : in_order_of_rows(layout)) {
    const std::string name = row_name(place, rounding.subjects[place.subject]);
    const auto [row, is_new] = row_of.try_emplace({place.phase, name}, verdict.rows.size());
    if (is_new) verdict.rows.push_back({place.phase, name});
    const double bound = rounding.bound(place, difference);
    widen(verdict.rows[row->second], difference, bound);
    if (!explains(bound, difference)) failures.push_back({place, difference, bound});
  }
  for (const Place& place : missing(layout, rounding.rounded)) failures.push_back({place, {}, 0});
  if (!failures.empty()) verdict.first_divergence = first_of(std::move(failures), rounding.subjects);
  return verdict;
}

}  // namespace braid::verify
