// Compares a layout with others that differ from it in one value.
#include "braid/plan/reasons.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "braid/base/text.h"
#include "braid/plan/cluster_file.h"
#include "braid/plan/cluster_predictor.h"

namespace braid::plan {
namespace {

constexpr int kMostNodes = 1 << 16, kSizesBetween = 16;

std::string bytes_text(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

int64_t most_held(const PlannedLayout& layout) { return layout.prediction.most_bytes(); }

// Returns the legal layout that needs least memory, with full recompute unless the run's own policies are kept. Its
// memory is the larger of the closed form's and the simulator's, because a layout must fit by both.
std::optional<PlannedLayout> leanest(const SearchRequest& request, const Cluster& cluster,
                                     const PredictOptions& options) {
  ClusterPredictor predictor(cluster, options);
  std::optional<PlannedLayout> best;
  RunSpec spec = request.space.run;
  for (const LayoutPoint& point : layout_space(request.space)) {
    if (point.recompute != RecomputeChoice::Full && point.recompute != RecomputeChoice::AsGiven) continue;
    set_layout(spec, point);
    if (best && predictor.least_bytes(spec) >= most_held(*best)) continue;
    auto layout = planned_layout(request, point, predictor);
    if (!layout || !is_legal(layout->spec)) continue;
    if (!best || most_held(*layout) < most_held(*best)) best = std::move(layout);
  }
  if (!best) return best;
  Prediction played = predict_run(best->spec, cluster, {options.formulas, PipelineDetail::Played});
  if (played.most_bytes() > most_held(*best)) best->prediction = std::move(played);
  return best;
}

bool fits_on(int nodes, SearchRequest request, const Cluster& cluster, const PredictOptions& options) {
  const Cluster larger = with_nodes(cluster, nodes, "--nodes");
  request.space.num_devices = larger.num_devices();
  const auto layout = leanest(request, larger, options);
  return layout && layout->prediction.fits();
}

// Returns a sentence with a number of nodes that suffices. The cluster doubles until a layout fits. About sixteen sizes
// between that size and half of it are then tried from below, because not every size has a mesh.
std::string enough_nodes(const SearchRequest& request, const Cluster& cluster, const PredictOptions& options) {
  if (cluster.network.bytes_per_second == 0) return "; for more nodes the cluster file must have a [network]";
  const int unit = fewest_nodes(cluster);
  const int64_t of_unit = cluster.num_devices() / (cluster.num_nodes() / unit);
  const auto fits = [&](int units) { return fits_on(units * unit, request, cluster, options); };
  int units = cluster.num_nodes() / unit * 2;
  while (units * unit <= kMostNodes && units * of_unit <= kMostDevices && !fits(units)) units *= 2;
  if (units * unit > kMostNodes || units * of_unit > kMostDevices) {
    return cat("; no number of nodes up to ", kMostNodes, " would do");
  }
  const int stride = std::max(units / kSizesBetween / 2, 1);
  int fewest = units / 2 + stride;
  while (fewest < units && !fits(fewest)) fewest += stride;
  return cat("; ", fewest * unit, " nodes would do");
}

std::string none_text(const SearchRequest& request) {
  const SpaceRequest& space = request.space;
  if (const auto layouts = layout_space(space); !layouts.empty()) {
    RunSpec first = space.run;
    set_layout(first, layouts[0]);
    return cat("none of ", layouts.size(), " layouts on ", space.num_devices,
               " devices is one that braid train takes (", text(problems_to_train(std::move(first)).at(0)), ")");
  }
  const std::vector<std::string> keys(space.pinned.begin(), space.pinned.end());
  return cat("no mesh of this run takes all ", counted(space.num_devices, "device"),
             ": tensor ranks divide heads, and data ranks the batch of ", counted(space.run.train.batch, "sequence"),
             keys.empty() ? "" : cat("; pinned are ", joined(keys)));
}

}  // namespace

std::string shortage(const SearchRequest& request, const Cluster& cluster, const PredictOptions& options) {
  const auto nearest = leanest(request, cluster, options);
  if (!nearest) return none_text(request);
  const std::vector<std::string> words = overrides(request.space.run, nearest->spec);
  return cat("no layout fits into ", bytes_text(request.memory_bytes), "; the leanest needs ",
             bytes_text(most_held(*nearest)), " (", joined(words, " "), ")", enough_nodes(request, cluster, options));
}

namespace {

constexpr size_t kMostReasons = 3;

// Returns the part with the most seconds of a step, or with the largest increase over `was`.
const StepPart& largest(const StepSeconds& is, const StepSeconds& was = {}) {
  return *std::ranges::max_element(kStepParts, {},
                                   [&](const StepPart& part) { return is.*part.seconds - was.*part.seconds; });
}

const MemoryPart& largest(const RankMemory& rank) {
  return *std::ranges::max_element(kMemoryParts, {}, [&](const MemoryPart& part) { return rank.*part.bytes; });
}

// A value in which layouts can differ, with its name in sentences.
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
     [](const LayoutPoint& from, LayoutPoint& to) {
       to.tensor = from.tensor, to.data = from.data, to.sequence_parallel = from.sequence_parallel;
     }},
    {"sequence parallelism", [](const LayoutPoint& l) { return std::string(l.sequence_parallel ? "on" : "off"); },
     [](const LayoutPoint& from, LayoutPoint& to) { to.sequence_parallel = from.sequence_parallel; }},
    {"context", [](const LayoutPoint& l) { return cat(l.context); },
     [](const LayoutPoint& from, LayoutPoint& to) {
       to.context = from.context, to.data = from.data, to.form = from.form;
     }},
    {"the form of context parallelism", [](const LayoutPoint& l) { return cat(l.form); },
     [](const LayoutPoint& from, LayoutPoint& to) { to.form = from.form; }},
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

// Returns true if `a` is better. Layouts that fit are better than others. They compare by time, the others by memory.
bool better(const Prediction& a, const Prediction& b) {
  if (a.fits() != b.fits()) return a.fits();
  return a.fits() ? a.step_seconds() < b.step_seconds() : a.most_bytes() < b.most_bytes();
}

constexpr double kSeenLonger = 5e-4;  // fraction of a step; a smaller difference counts as none

std::string loss_text(const Prediction& is, const Prediction& other) {
  if (!other.fits()) {
    if (!other.servers_fit()) return cat("would need ", bytes_text(other.server_bytes), " on each server");
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
  beside.compute = 0;  // computation is not a limit; it is the purpose of the step
  const auto& [name, seconds] = largest(beside);
  return cat(fixed(100 * beside.*seconds / prediction.step_seconds(), 1), " % of the step goes to ", name);
}

class Neighbours {
 public:
  Neighbours(const SearchRequest& request, Predictor& predictor)
      : request_(request), predictor_(predictor), space_(layout_space(request.space)) {}

  std::string reasons(const PlannedLayout& layout) const {
    const Prediction is = predictor_.predict(layout.spec);  // by the same method as the others
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
  // Returns the best layout of the space that differs from `from` in this aspect only.
  std::optional<PlannedLayout> best_other(const PlannedLayout& from, const Aspect& aspect) const {
    std::optional<PlannedLayout> best;
    for (const LayoutPoint& candidate : space_) {
      LayoutPoint same = candidate;
      aspect.copy(from.layout, same);
      if (!(same == from.layout) || aspect.value(candidate) == aspect.value(from.layout)) continue;
      auto other = planned_layout(request_, candidate, predictor_);
      if (!other || other->spec == from.spec) continue;  // the values chosen for it give the same run
      const bool leads = !best || better(other->prediction, best->prediction);
      if (leads && is_legal(other->spec)) best = std::move(other);
    }
    return best;
  }

  const SearchRequest& request_;
  Predictor& predictor_;
  const std::vector<LayoutPoint> space_;
};

}  // namespace

void add_reasons(const SearchRequest& request, std::vector<PlannedLayout>& layouts, Predictor& predictor) {
  const Neighbours neighbours(request, predictor);
  for (PlannedLayout& layout : layouts) layout.why = neighbours.reasons(layout);
}

}  // namespace braid::plan
