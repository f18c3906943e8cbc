// Enumerates layouts by nested loops, of which the mesh is the outermost.
#include "braid/plan/layout_space.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "braid/base/text.h"
#include "braid/layout/state_blocks.h"
#include "braid/model/shape.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/fields.h"
#include "braid/spec/partition.h"
#include "braid/spec/recompute.h"

namespace braid::plan {

bool same_work(const LayoutPoint& a, const LayoutPoint& b) {
  return a.pipe == b.pipe && a.data == b.data && a.tensor == b.tensor && a.context == b.context && a.form == b.form &&
         a.sequence_parallel == b.sequence_parallel && a.microbatch == b.microbatch && a.recompute == b.recompute;
}

void set_layout(RunSpec& run, const LayoutPoint& layout) {
  run.mesh.pipe = layout.pipe;
  run.mesh.data = layout.data;
  run.mesh.tensor = layout.tensor;
  run.mesh.context = layout.context;
  run.mesh.context_parallel = layout.form;
  run.mesh.sequence_parallel = layout.sequence_parallel;
  run.train.microbatch = layout.microbatch;
  run.pipeline.schedule = layout.schedule->name;
  run.pipeline.chunks = layout.chunks;
  if (layout.cut != CutChoice::AsGiven) run.pipeline.partition = "even";
  if (layout.shares != BatchSplitChoice::AsGiven) run.mesh.batch_shares = kEqualShares;
  run.sync.zero = layout.zero;
  run.sync.zero_group = layout.zero_group;
  if (layout.recompute == RecomputeChoice::ByStage) {
    run.memory.recompute = word(RecomputeChoice::None);
  } else if (layout.recompute != RecomputeChoice::AsGiven) {
    run.memory.recompute = word(layout.recompute);
  }
}

const std::vector<std::string>& layout_keys() {
  static const std::vector<std::string> kKeys = {"mesh.pipe",          "mesh.data",
                                                 "mesh.tensor",        "mesh.sequence_parallel",
                                                 "mesh.context",       "mesh.context_parallel",
                                                 "train.microbatch",   "pipeline.schedule",
                                                 "pipeline.chunks",    "sync.zero",
                                                 "sync.zero_group",    "memory.recompute",
                                                 "pipeline.partition", "mesh.batch_shares"};
  return kKeys;
}

std::vector<std::string> overrides(const RunSpec& run, const RunSpec& spec) {
  std::vector<std::string> all;
  for (const std::string& key : layout_keys()) {
    const spec::Field& field = *spec::find_field(key);
    if (const std::string value = spec::value_text(field, spec); value != spec::value_text(field, run)) {
      all.push_back(cat(key, "=", value));
    }
  }
  return all;
}

namespace {

constexpr int kMostChunks = 8;

std::vector<int> divisors(int64_t number) {
  std::vector<int> all;
  for (int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    all.push_back(static_cast<int>(d));
    if (d * d != number) all.push_back(static_cast<int>(number / d));
  }
  std::ranges::sort(all);
  return all;
}

class Space {
 public:
  explicit Space(const SpaceRequest& request)
      : request_(request),
        run_(request.run),
        given_(given(request.run)),
        cuts_(spec::partition_list(request.run.pipeline.partition).value_or(std::vector<double>{}).size()),
        policies_(spec::recompute_entries(request.run.memory).size()) {
    if (pinned("mesh.batch_shares")) shares_ = spec::batch_shares(run_.mesh);
  }

  std::vector<LayoutPoint> all() {
    const int64_t devices = request_.num_devices / run_.mesh.expert;
    if (devices * run_.mesh.expert != request_.num_devices) return {};
    for (const int tensor : kept("mesh.tensor", divisors(devices), given_.tensor)) {
      if (!model::can_split_heads(run_.model, tensor) || cuts_state_blocks(tensor)) continue;
      for (const int context : kept("mesh.context", contexts(devices / tensor), given_.context)) {
        for (const int pipe : kept("mesh.pipe", divisors(devices / tensor / context), given_.pipe)) {
          const int64_t data = devices / tensor / context / pipe;
          if (devices % (int64_t{tensor} * context * pipe) != 0) continue;
          if (run_.train.batch % (sum_of_shares(data) * run_.mesh.expert) != 0) continue;
          if (pipe > run_.model.layers) continue;  // an even cut needs a block for each stage
          add_mesh({.pipe = pipe, .data = static_cast<int>(data), .tensor = tensor, .context = context});
        }
      }
    }
    return std::move(layouts_);
  }

 private:
  bool cuts_state_blocks(int tensor) const {
    RunSpec run = run_;
    run.mesh.tensor = tensor;
    return !layout::state_block_problems(run).empty();
  }

  static LayoutPoint given(const RunSpec& run) {
    return {run.mesh.pipe,
            run.mesh.data,
            run.mesh.tensor,
            run.mesh.context,
            run.mesh.context_parallel,
            run.mesh.sequence_parallel,
            run.train.microbatch,
            nullptr,
            run.pipeline.chunks,
            run.sync.zero,
            run.sync.zero_group,
            RecomputeChoice::AsGiven,
            CutChoice::AsGiven,
            BatchSplitChoice::AsGiven};
  }
  // Returns the sum of the data ranks' shares of the batch: 1 for each, unless the run's own list applies.
  int64_t sum_of_shares(int64_t data) const {
    if (!shares_ || std::ssize(*shares_) != data) return data;
    return std::accumulate(shares_->begin(), shares_->end(), int64_t{0});
  }
  // Returns the sequences of one share. Expert ranks split the batch, as data ranks do.
  int sequences_of_share(const LayoutPoint& layout) const {
    return static_cast<int>(run_.train.batch / sum_of_shares(layout.data) / run_.mesh.expert);
  }
  bool pinned(const char* key) const { return request_.pinned.contains(key); }
  template <class Value>
  std::vector<Value> kept(const char* key, std::vector<Value> values, const Value& given) const {
    return pinned(key) ? std::vector<Value>{given} : values;
  }

  // Returns the numbers of context ranks, of `ranks` that are left for all axes but tensor.
  std::vector<int> contexts(int64_t ranks) const {
    if (!request_.on_cpus) return {1};
    std::vector<int> all = divisors(ranks);
    std::erase_if(all, [&](int context) {
      const int tokens = run_.model.context / context;
      if (tokens * context != run_.model.context || context % std::max(run_.mesh.ulysses_ranks, 1) != 0) return true;
      return context > 1 && context != given_.context && tokens < kFewestContextTokens;
    });
    return all;
  }
  std::vector<ContextParallel> forms(int context) const {
    using enum ContextParallel;
    std::vector<ContextParallel> all{given_.form};
    if (context == 1 || run_.mesh.ulysses_ranks > 0) return all;
    for (const ContextParallel form : {Ring, Ulysses}) {
      if (form != given_.form) all.push_back(form);
    }
    return all;
  }
  std::vector<bool> token_splits(const LayoutPoint& layout) const {
    const bool divides = run_.model.context / layout.context % layout.tensor == 0;
    return layout.tensor > 1 && divides ? std::vector{false, true} : std::vector{false};
  }

  static std::vector<CutChoice> cuts_of(int pipe) {
    using enum CutChoice;
    return pipe > 1 ? std::vector{Even, Balanced} : std::vector{Even};
  }

  std::vector<BatchSplitChoice> shares_of(const LayoutPoint& layout) const {
    using enum BatchSplitChoice;
    const bool unlike = request_.num_kinds > 1 && layout.data > 1 && !layout.schedule->asynchronous();
    return unlike ? std::vector{Equal, Balanced} : std::vector{Equal};
  }

  void add_mesh(LayoutPoint layout) {
    if (pinned("mesh.data") && layout.data != given_.data) return;
    for (const auto form : kept("mesh.context_parallel", forms(layout.context), given_.form)) {
      layout.form = form;
      for (const bool splits : kept("mesh.sequence_parallel", token_splits(layout), given_.sequence_parallel)) {
        layout.sequence_parallel = splits;
        if (!splits || layout.tensor > 1) add_ranks(layout);
      }
    }
  }

  void add_ranks(LayoutPoint layout) {
    for (const int microbatch : kept("train.microbatch", divisors(sequences_of_share(layout)), given_.microbatch)) {
      layout.microbatch = microbatch;
      using enum RecomputeChoice;
      for (const auto policy :
           kept("memory.recompute", std::vector{None, ByStage, Selective, Full}, given_.recompute)) {
        layout.recompute = policy;
        for (const ScheduleTraits& traits : schedule_traits()) add_schedule(layout, traits);
      }
    }
  }

  void add_schedule(LayoutPoint layout, const ScheduleTraits& traits) {
    const bool only = pinned("pipeline.schedule");
    if (only ? traits.name != run_.pipeline.schedule : traits.asynchronous()) return;
    if (!only && layout.pipe == 1 && traits.name != "1f1b") return;
    if (std::max(1, traits.chunks) * layout.pipe > run_.model.layers) return;
    layout.schedule = &traits;
    std::vector<int> chunks{0};
    if (traits.chunks == 0) {
      chunks.clear();
      for (int count = 2; count <= kMostChunks && count * layout.pipe <= run_.model.layers; ++count) {
        chunks.push_back(count);
      }
    }
    for (const int count : kept("pipeline.chunks", std::move(chunks), given_.chunks)) {
      layout.chunks = count;
      for (const auto cut : kept("pipeline.partition", cuts_of(layout.pipe), given_.cut)) {
        layout.cut = cut;
        for (const auto shares : kept("mesh.batch_shares", shares_of(layout), given_.shares)) {
          layout.shares = shares;
          if (is_possible(layout, std::max({1, traits.chunks, count}))) add_zero(layout);
        }
      }
    }
  }

  // Returns true if the layout's schedule, and its lists with an entry for each stage, are possible.
  bool is_possible(const LayoutPoint& layout, int chunks) const {
    const size_t stages = static_cast<size_t>(layout.pipe) * static_cast<size_t>(chunks);
    const bool listed = layout.cut == CutChoice::AsGiven && cuts_ > 0;
    // An even cut needs a block for each stage.
    if (listed ? cuts_ != stages : stages > static_cast<size_t>(run_.model.layers)) return false;
    if (layout.recompute == RecomputeChoice::AsGiven && policies_ > 1 && policies_ != stages) return false;
    ScheduleRequest asked{.ranks = layout.pipe,
                          .microbatches = sequences_of_share(layout) / layout.microbatch,
                          .chunks = layout.chunks,
                          .group = run_.pipeline.group};
    const auto is_taken = [&] { return schedule_problems(layout.schedule->name, asked).empty(); };
    if (layout.shares != BatchSplitChoice::AsGiven || spec::has_equal_shares(run_.mesh)) return is_taken();
    RunSpec run = run_;
    set_layout(run, layout);
    const auto shares = spec::batch_shares(run.mesh);
    if (!shares || run.train.batch % spec::batch_unit(run) != 0) return false;
    return std::ranges::all_of(*shares, [&](int share) {
      asked.microbatches = static_cast<int>(run.train.batch / spec::batch_unit(run)) * share;
      return is_taken();
    });
  }

  void add_zero(LayoutPoint layout) {
    for (const int zero : kept("sync.zero", layout.data > 1 ? std::vector{0, 1, 2, 3} : std::vector{0}, given_.zero)) {
      if (layout.shares == BatchSplitChoice::Balanced && zero > 1) continue;  // refused by spec/combine.h
      layout.zero = zero;
      std::vector<int> groups{0};
      // Data is the outermost axis, so a node has this many data ranks.
      const int near = request_.devices_per_node / (layout.tensor * layout.pipe);
      if (zero > 0 && near > 1 && near < layout.data && layout.data % near == 0) groups.push_back(near);
      for (const int group : kept("sync.zero_group", std::move(groups), given_.zero_group)) {
        layout.zero_group = group;
        layouts_.push_back(layout);
      }
    }
  }

  const SpaceRequest& request_;
  const RunSpec& run_;
  const LayoutPoint given_;
  const size_t cuts_, policies_;            // entries of the run's lists; cuts_ is 0 if the partition is a word
  std::optional<std::vector<int>> shares_;  // shares of a run that keeps its own
  std::vector<LayoutPoint> layouts_;
};

}  // namespace

std::vector<LayoutPoint> layout_space(const SpaceRequest& request) { return Space(request).all(); }

}  // namespace braid::plan
