// Sums of tensors at the fullest moment of each pass.
#include "braid/plan/pass_bytes.h"

#include <algorithm>

#include "braid/plan/block_sizes.h"
#include "braid/plan/product_copies.h"
#include "braid/spec/partition.h"

namespace braid::plan {
namespace {

using Keeps = spec::Recompute::Keeps;

// Returns true if full backwards leave weight gradients until the sum of their layer's input gradient travels.
bool defers_to_sums(const PlannedRun& run) {
  return run.layout.tensor > 1 && run.spec.mesh.tensor_overlap != OverlapChoice::Off;
}

// The products of a block on a rank.
struct BlockProducts {
  BlockProducts(const RunSpec& spec, const RunLayout& layout) {
    const BlockSizes z(spec.model, layout.tensor);
    const double n = layout.tokens, t = layout.tensor;
    first = {n, z.h, (z.q + 2 * z.kv) / t};
    behind_attention = {n, z.q / t, z.h};
    up = {n * z.k, z.h, (z.gated ? 2 : 1) * z.f / t};
    down = {n * z.k, z.f / t, z.h};
  }
  LayerProduct first, behind_attention, up, down;
};

// Return the most bytes that backward of a block's branch holds, beside what the block kept.
double feed_forward_bytes(const PlannedRun& run, const ActivationBytes& x, TrainedMatrices trained, bool selected) {
  const BlockProducts products(run.spec, run.layout);
  const double again = selected && trained.down ? x.activated : 0;
  const double sums = trained.down ? 0 : x.inner_sums;  // else they take the place of that product's input
  const double down = x.behind_product() + x.activated + again + sums + 2 * x.routed +
                      backward_copies(run, products.down, {.of_weight = trained.down});
  const double input = selected || !trained.down || waits_in_a_line(run) ? 0 : x.activated;  // freed by then
  const double up = x.before_product() + (trained.up ? x.gathered + (selected ? x.hidden : 0) : 0) + 2 * x.routed +
                    backward_copies(run, products.up, {.of_weight = trained.up});
  return std::max(down, up - input);
}

double attention_bytes(const PlannedRun& run, const ActivationBytes& x, TrainedMatrices trained, bool selected) {
  const BlockProducts products(run.spec, run.layout);
  const double again = selected ? x.heads + x.context.again : 0;
  // In reproducible mode the output's heads are copied for the weight pass (nn/head_groups.h).
  const bool copies_outputs = waits_in_a_line(run) && run.layout.account->sums == layout::TensorSums::ByValue;
  // Attention of widened types repeats its forward.
  const double single = 4 / element_bytes(run.spec.train.dtype);
  const double gradients = multiplies_widened(run) ? single * 2 * (x.qkv + x.heads) : x.qkv;
  const double core = std::max(x.heads + gradients, x.context.working) + again + (copies_outputs ? x.heads : 0);
  const double last = x.behind_product() + x.heads + again + backward_copies(run, products.behind_attention);
  const double first = x.before_product() + (trained.qkv ? x.gathered + (selected ? x.hidden : 0) : 0) +
                       backward_copies(run, products.first, {.of_weight = trained.qkv});
  return std::max({core, last, first});
}

}  // namespace

bool output_stays(const PlannedRun& run, const ActivationBytes& x, const StageLoad& load) {
  return load.head && !is_resident(run.spec.memory.parameters) && !x.ends_in_norm;
}

bool waits_in_a_line(const PlannedRun& run) {
  const ScheduleTraits& schedule = *spec::traits_of(run.spec.pipeline);
  return schedule.splits_backward && schedule.placement == schedule::StagePlacement::Linear;
}

double head_kept_bytes(const ActivationBytes& x, Keeps keeps) {
  if (!x.whole_logits) return x.head_everything;  // the gradient of the loss's input is as large as that
  return (keeps == Keeps::Selected ? x.head_selected : x.head_everything) + x.logits;
}

double block_working_bytes(const PlannedRun& run, const ActivationBytes& x, const BlockPlace& place) {
  const bool selected = place.keeps == Keeps::Selected;
  // A gradient from another stage counts as communication. Behind a norm it takes the place of the norm's input.
  // Where blocks have graphs of their own, their outputs stay until then.
  const bool own_graph = place.own_graph || run.spec.sync.zero == 3 || !is_resident(run.spec.memory.parameters);
  const bool takes_place = x.ends_in_norm && !own_graph;
  const double coming = place.gradient_is_ours && !takes_place ? x.hidden : 0;
  const double dropped =
      run.spec.model.dropout > 0 ? x.hidden : 0;  // the gradient behind the mask, beside the incoming one
  // When attention runs, the feed-forward branch's tensors are freed, unless weight gradients have a separate pass.
  const TrainedMatrices& trained = x.trained[place.kind];
  const double of_products = (trained.down ? x.activated : 0) + (trained.up ? x.hidden : 0);  // inputs that they read
  const double of_feed = x.inner + 2 * x.routed + x.chosen + (selected ? 0 : of_products);
  const double freed = waits_in_a_line(run) ? 0 : of_feed;
  return coming + dropped +
         std::max(feed_forward_bytes(run, x, trained, selected), attention_bytes(run, x, trained, selected) - freed);
}

double head_pending_bytes(const ActivationBytes& x) {
  return x.whole_logits && x.of_logits.of_weight ? x.all_tokens + x.logits : 0;
}

double head_working_bytes(const PlannedRun& run, const ActivationBytes& x) {
  const double last_output =
      x.picks_rows && !x.whole_logits ? x.all_tokens : 0;  // an argument while chunks are computed
  const double gradient = x.of_logits.of_input ? std::max(x.all_tokens, x.widened) : 0;
  const double head =
      gradient + last_output + (x.whole_logits ? 0 : x.logits) + backward_copies(run, x.head_product, x.of_logits);
  if (x.gathered == 0 || !x.of_logits.of_input) return head;
  const bool defers = defers_to_sums(run);
  const double freed = waits_in_a_line(run) || defers ? 0 : x.all_tokens + x.logits;
  const layout::ProductGradients meanwhile{.of_input = false, .of_weight = defers && x.of_logits.of_weight};
  return std::max(head, x.before_product() - freed + backward_copies(run, x.head_product, meanwhile));
}

double forward_bytes(const ActivationBytes& x, const StageLoad& load) {
  // The residual, its norm and the feed-forward layer, and the input of a stage that has no backward.
  const bool has_input = !load.embedding && load.blocks > 1 && load.backward == StageBackward::Nothing;
  return 2 * x.hidden + x.inner + x.activated + (has_input ? x.hidden : 0);
}

}  // namespace braid::plan
