// One thing is changed at a time.
#include "braid/plan/reasons.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "braid/base/text.h"

namespace braid::plan {
namespace {

constexpr size_t kMostReasons = 3;

// The part that is most of a step, or of what it has more than `was`.
const StepPart& largest(const StepSeconds& is, const StepSeconds& was = {}) {
  return *std::ranges::max_element(kStepParts, {},
                                   [&](const StepPart& part) { return is.*part.seconds - was.*part.seconds; });
}

const MemoryPart& largest(const RankMemory& rank) {
  return *std::ranges::max_element(kMemoryParts, {}, [&](const MemoryPart& part) { return rank.*part.bytes; });
}

// A thing that layouts differ in, as a sentence names it.
struct Aspect {
  const char* name;
  std::string (*value)(const LayoutPoint& layout);
  void (*copy)(const LayoutPoint& from, LayoutPoint& to);
};
constexpr Aspect kAspects[] = {
    {"batch shares", [](const LayoutPoint& l) { return cat(l.shares); },
     [](const LayoutPoint& from, LayoutPoint& to) { to.shares = from.shares; }},
    {"pipe", [](const LayoutPoint& l) { return cat(l.pipe); },
     [](const LayoutPoint& from, LayoutPoint& to) { to.pipe = from.pipe, to.data = from.data; }},
    {"tensor", [](const LayoutPoint& l) { return cat(l.tensor); },
     [](const LayoutPoint& from, LayoutPoint& to) { to.tensor = from.tensor, to.data = from.data; }},
    {"microbatch", [](const LayoutPoint& l) { return cat(l.microbatch); },
     [](const LayoutPoint& from, LayoutPoint& to) { to.microbatch = from.microbatch; }},
    {"schedule", [](const LayoutPoint& l) { return cat(l.schedule->name); },
     [](const LayoutPoint& from, LayoutPoint& to) { to.schedule = from.schedule, to.chunks = from.chunks; }},
    {"zero", [](const LayoutPoint& l) { return cat(l.zero); },
     [](const LayoutPoint& from, LayoutPoint& to) { to.zero = from.zero, to.zero_group = from.zero_group; }},
    {"recompute", [](const LayoutPoint& l) { return cat(l.recompute); },
     [](const LayoutPoint& from, LayoutPoint& to) { to.recompute = from.recompute; }},
    {"cut", [](const LayoutPoint& l) { return cat(l.cut); },
     [](const LayoutPoint& from, LayoutPoint& to) { to.cut = from.cut; }},
};

// Layouts that fit before those that do not, then by what they take or hold.
bool better(const Prediction& a, const Prediction& b) {
  if (a.fits() != b.fits()) return a.fits();
  return a.fits() ? a.step_seconds() < b.step_seconds() : a.fullest().total() < b.fullest().total();
}

constexpr double kSeenLonger = 5e-4;  // of a step

std::string loss_text(const Prediction& is, const Prediction& other) {
  if (!other.fits()) {
    const RankMemory& rank = other.fullest();
    return cat("would need ", fixed(std::ldexp(static_cast<double>(rank.total()), -30), 1), " GiB on rank ",
               &rank - other.memory.data(), " of pipe, most of it ", largest(rank).name);
  }
  const double longer = other.step_seconds() / is.step_seconds() - 1;
  if (longer < kSeenLonger) return "would take as long";
  return cat("would take ", fixed(100 * longer, 1), " % longer, most of it ", largest(other.seconds, is.seconds).name);
}

std::string limit_text(const Prediction& prediction) {
  StepSeconds beside = prediction.seconds;
  beside.compute = 0;  // what the step is for
  const auto& [name, seconds] = largest(beside);
  return cat(fixed(100 * beside.*seconds / prediction.step_seconds(), 1), " % of the step goes to ", name);
}

class Neighbours {
 public:
  Neighbours(const SearchRequest& request, Predictor& foresight)
      : request_(request), foresight_(foresight), space_(layout_space(request.space)) {}

  std::string reasons(const PlannedLayout& layout) const {
    const Prediction is = foresight_.predict(layout.spec);  // as the others are predicted
    std::vector<std::string> sentences;
    for (const Aspect& aspect : kAspects) {
      if (sentences.size() == kMostReasons) break;
      const auto other = best_other(layout, aspect);
      if (!other || better(other->prediction, is)) continue;
      sentences.push_back(cat(aspect.name, " ", aspect.value(layout.layout), " rather than ",
                              aspect.value(other->layout), ", which ", loss_text(is, other->prediction)));
    }
    if (!sentences.empty()) sentences.back() += ". ";
    return joined(sentences, "; ") + limit_text(layout.prediction);
  }

 private:
  // The best of the space that differs from `from` in this alone.
  std::optional<PlannedLayout> best_other(const PlannedLayout& from, const Aspect& aspect) const {
    std::optional<PlannedLayout> best;
    for (const LayoutPoint& candidate : space_) {
      LayoutPoint same = candidate;
      aspect.copy(from.layout, same);
      if (!(same == from.layout) || aspect.value(candidate) == aspect.value(from.layout)) continue;
      auto other = planned_layout(request_, candidate, foresight_);
      if (!other || other->spec == from.spec) continue;  // what was to be chosen came out the same
      const bool leads = !best || better(other->prediction, best->prediction);
      if (leads && is_legal(other->spec)) best = std::move(other);
    }
    return best;
  }

  const SearchRequest& request_;
  Predictor& foresight_;
  const std::vector<LayoutPoint> space_;
};

}  // namespace

void add_reasons(const SearchRequest& request, std::vector<PlannedLayout>& layouts, Predictor& foresight) {
  const Neighbours neighbours(request, foresight);
  for (PlannedLayout& layout : layouts) layout.why = neighbours.reasons(layout);
}

}  // namespace braid::plan
