// Counts the copies product by product.
#include "braid/plan/product_copies.h"

#include <algorithm>
#include <cmath>

#include "braid/layout/product_panels.h"
#include "braid/plan/block_work.h"

namespace braid::plan {
namespace {

constexpr double kSingleBytes = 4;

bool copies_factors(const PlannedRun& run) {
  return element_bytes(run.spec.train.dtype) < kSingleBytes && run.cluster.devices.front().shared_cores;
}

// Returns the columns of b, [k, m], that are widened at a time.
double panel_columns(double k, double m) {
  return std::min(m, std::max(1.0, std::floor(static_cast<double>(layout::kPanelElements) / k)));
}

// Returns the float32 elements of the copies of a product [n, k] x [k, m] whose sums have parts.
double widened_in_parts(double n, double k, double m) { return k * (n + panel_columns(k, m)); }

// Returns those of other products, which go by columns or rows of the second factor. They copy the result, too.
double widened(double n, double k, double m) {
  if (m >= k) return widened_in_parts(n, k, m) + n * panel_columns(k, m);
  return m * (n + panel_columns(m, k)) + n * panel_columns(m, k);
}

}  // namespace

bool multiplies_widened(const PlannedRun& run) {
  if (!copies_factors(run)) return false;
  return run.spec.train.dtype != DType::BFloat16 ||
         !std::ranges::all_of(run.cluster.devices, &DeviceGroup::bfloat16_products);
}

double backward_copies(const PlannedRun& run, const LayerProduct& layer, layout::ProductGradients gradients) {
  if (!copies_factors(run)) return 0;
  const auto& [rows, inputs, outputs] = layer;
  if (!multiplies_widened(run)) return gradients.of_weight ? element_bytes(run.spec.train.dtype) * rows * inputs : 0;
  const bool in_parts = run.layout.account->sums == layout::TensorSums::ByValue;
  double most = 0;
  if (gradients.of_input) {
    most = in_parts ? widened_in_parts(rows, outputs, inputs) : widened(rows, outputs, inputs);
  }
  if (gradients.of_weight) {
    most = std::max(most, in_parts ? widened_in_parts(outputs, rows, inputs) : rows * (outputs + inputs));
  }
  return kSingleBytes * most;
}

}  // namespace braid::plan
