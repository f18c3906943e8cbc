// The leanest layout, on this cluster and on larger ones.
#include "braid/plan/shortage.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "braid/base/counted.h"
#include "braid/base/text.h"
#include "braid/plan/cluster_file.h"
#include "braid/plan/cluster_predictor.h"

namespace braid::plan {
namespace {

constexpr int kMostNodes = 1 << 16, kSizesBetween = 16;

std::string bytes_text(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

int64_t most_held(const PlannedLayout& layout) { return layout.prediction.fullest().total(); }

// The legal layout that holds least: everything is computed again. What it holds is the more of what closed forms and
// the simulator say, since a layout must fit by both.
std::optional<PlannedLayout> leanest(const SearchRequest& request, const Cluster& cluster,
                                     const PredictOptions& options) {
  ClusterPredictor foresight(cluster, options);
  std::optional<PlannedLayout> best;
  RunSpec spec = request.space.run;
  for (const LayoutPoint& point : layout_space(request.space)) {
    if (point.recompute != RecomputeChoice::Full && point.recompute != RecomputeChoice::AsGiven) continue;
    set_layout(spec, point);
    if (best && foresight.least_bytes(spec) >= most_held(*best)) continue;
    auto layout = planned_layout(request, point, foresight);
    if (!layout || !is_legal(layout->spec)) continue;
    if (!best || most_held(*layout) < most_held(*best)) best = std::move(layout);
  }
  if (!best) return best;
  Prediction played = predict_run(best->spec, cluster, {options.formulas, PipelineDetail::Played});
  if (played.fullest().total() > most_held(*best)) best->prediction = std::move(played);
  return best;
}

bool fits_on(int nodes, SearchRequest request, const Cluster& cluster, const PredictOptions& options) {
  const Cluster larger = with_nodes(cluster, nodes, "--nodes");
  request.space.num_devices = larger.num_devices();
  const auto layout = leanest(request, larger, options);
  return layout && layout->prediction.fits();
}

// The cluster doubles until one fits; the fewest nodes that do lie between its half and it, where some sixteen sizes
// are looked at, since not every size has a mesh.
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

}  // namespace braid::plan
