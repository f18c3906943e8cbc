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

}  // namespace

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
  const TrainedMatrices& trained = x.trained[place.kind];
  const double of_products = (trained.down ? x.activated : 0) + (trained.up ? x.hidden : 0);  // inputs that they read
  const double again_feed = selected ? of_products : 0;
  const double again_attention = selected ? x.heads + x.context.again + (trained.qkv ? x.hidden : 0) : 0;
  // A gradient from another stage counts as communication. Behind a norm it takes the place of the norm's input.
  // Where blocks have graphs of their own, their outputs stay until then.
  const bool own_graph = place.own_graph || run.spec.sync.zero == 3 || !is_resident(run.spec.memory.parameters);
  const bool takes_place = x.ends_in_norm && !own_graph;
  const double coming = place.gradient_is_ours && !takes_place ? x.hidden : 0;
  const BlockProducts products(run.spec, run.layout);
  const double copied_feed = std::max(backward_copies(run, products.up, {.of_weight = trained.up}),
                                      backward_copies(run, products.down, {.of_weight = trained.down}));
  const double sums = trained.down ? 0 : x.inner_sums;  // else they take the place of that product's input
  const double activated = selected || !trained.down ? 0 : x.activated;
  const double feed = std::max(x.activated + again_feed + 2 * x.routed + copied_feed + sums + x.gathered,
                               2 * x.gathered + x.exchanged - activated);
  // By then the feed-forward branch's tensors are freed, unless weight gradients have a separate pass.
  const bool waits = waits_in_a_line(run);
  const double of_feed = x.inner + 2 * x.routed + x.chosen + (selected ? 0 : of_products);
  const double freed = waits ? -x.hidden : of_feed;
  // LibTorch makes the gradients of queries, keys and values apart, and copies them together. Capped attention does
  // not.
  const double gradients = (run.spec.model.attention_cap > 0 ? 1 : 2) * x.qkv;
  const double copied = backward_copies(run, products.first, {.of_weight = trained.qkv});
  const double around_first = x.gathered > 0 ? 2 * x.gathered + x.exchanged + x.qkv : 0;
  const double behind_last = x.heads + again_attention + x.gathered;
  // In reproducible mode the output's heads are copied for the weight pass (nn/head_groups.h).
  const double outputs = waits && run.spec.train.reduction == Reduction::Reproducible ? x.heads : 0;
  const double attention =
      std::max({std::max(x.heads + gradients, x.context.working) + again_attention, behind_last, around_first}) -
      freed + copied + outputs;
  const double dropped =
      run.spec.model.dropout > 0 ? x.hidden : 0;  // the gradient behind the mask, beside the incoming one
  // Then the input's gradient and the output's are float32, beside the rounded ones.
  return coming + dropped + std::max(feed, attention) + 1.5 * x.widened;
}

double head_pending_bytes(const ActivationBytes& x) {
  return x.whole_logits && x.of_logits.of_weight ? x.all_tokens + x.logits : 0;
}

double head_working_bytes(const PlannedRun& run, const ActivationBytes& x, const StageLoad& load) {
  const double again = load.recompute.keeps == Keeps::Selected && x.of_logits.of_weight ? x.all_tokens : 0;
  const double last_output =
      x.picks_rows && !x.whole_logits ? x.all_tokens : 0;  // an argument while chunks are computed
  const double head = (x.of_logits.of_input ? x.all_tokens : 0) + again + last_output +
                      (x.whole_logits ? 0 : x.logits) +
                      backward_copies(run, x.head_product, x.of_logits);
  const double freed = waits_in_a_line(run) || defers_to_sums(run) ? 0 : x.all_tokens + x.logits;
  const double scattered = x.gathered > 0 && x.of_logits.of_input ? x.gathered + x.exchanged + x.hidden - freed : 0;
  return std::max(head, scattered);
}

double forward_bytes(const ActivationBytes& x, const StageLoad& load) {
  // The residual, its norm and the feed-forward layer, and the input of a stage that has no backward.
  const bool has_input = !load.embedding && load.blocks > 1 && load.backward == StageBackward::Nothing;
  return 2 * x.hidden + x.inner + x.activated + (has_input ? x.hidden : 0);
}

}  // namespace braid::plan
