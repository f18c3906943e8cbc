// Counts parameters and the bytes of their states.
#include "braid/plan/model_states.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "braid/plan/block_work.h"

namespace braid::plan {
namespace {

constexpr double kAnswerBytes = 64;  // at most, of a server's answer before its elements and of messages beside it

ParameterKind kind_of(const layout::ParamCount& param) {
  if (param.columns.is_one()) return ParameterKind::Vector;
  return param.op == model::OpKind::Linear ? ParameterKind::BlockMatrix : ParameterKind::Table;
}

// Returns the parameters of a part as one tensor rank and one expert rank hold them.
StageParameters parameters_of(const layout::PartAccount& part, const RunSpec& spec, const RunLayout& layout) {
  const model::Extents& extents = layout.extents.all;
  StageParameters sum;
  for (const layout::ParamCount& param : part.params) {
    const bool of_experts = param.held == layout::HeldBy::ExpertRanks;
    const RankGroup copies = of_experts ? layout.expert_gradient_group : layout.gradient_group;
    const double rows = param.rows.at(extents), columns = param.columns.at(extents);
    const double count = std::ceil(rows * columns / layout.aligned_to) * layout.aligned_to;
    const ParameterSum each = param.trained == model::Trained::No
                                  ? ParameterSum{.frozen = count, .forward_only = part.runs_backward ? 0 : count}
                                  : ParameterSum{count, num_moments(spec.optimizer, kind_of(param)) * count,
                                                 reducer_bytes(spec, {rows, columns, count}, copies.size)};
    if (of_experts) {
      sum.experts += extents['e'] * each;
    } else {
      sum.shared += each;
    }
  }
  return sum;
}

}  // namespace

ParameterSum& ParameterSum::operator+=(const ParameterSum& other) {
  count += other.count;
  moments += other.moments;
  reduced.kept += other.reduced.kept;
  reduced.summed += other.reduced.summed;
  frozen += other.frozen;
  forward_only += other.forward_only;
  return *this;
}

ParameterSum operator*(double times, const ParameterSum& sum) {
  return {times * sum.count,
          times * sum.moments,
          {times * sum.reduced.kept, times * sum.reduced.summed},
          times * sum.frozen,
          times * sum.forward_only};
}

StageParameters& StageParameters::operator+=(const StageParameters& other) {
  shared += other.shared;
  experts += other.experts;
  return *this;
}

StateBytes& StateBytes::operator+=(const StateBytes& other) {
  weights += other.weights;
  gradients += other.gradients;
  optimizer += other.optimizer;
  frozen += other.frozen;
  forward_only += other.forward_only;
  return *this;
}

int num_moments(const OptimizerSpec& spec, ParameterKind kind) {
  switch (spec.kind) {
    case OptimizerKind::AdamW:
      return 2;
    case OptimizerKind::Sgd:
      return spec.momentum > 0 ? 1 : 0;
    case OptimizerKind::Adagrad:
    case OptimizerKind::Lion:
      return 1;
    case OptimizerKind::Muon:
      return kind == ParameterKind::BlockMatrix ? 1 : 2;
  }
  return 2;
}

namespace {

double master_bytes(DType type) { return std::max(element_bytes(type), kFloatBytes); }

double moment_bytes(DType type, StateType states) { return state_element_bytes(states, master_bytes(type)); }

}  // namespace

StateBytes state_bytes(DType type, FormulaSet formulas, const ParameterSum& sum, StateType states) {
  const double element = element_bytes(type), single = kFloatBytes;
  if (is_torchtitan(formulas)) {
    const double optimizer = single * sum.count + moment_bytes(DType::Float32, states) * sum.moments;
    return {element * sum.count, single * sum.count, optimizer, single * sum.frozen, single * sum.forward_only};
  }
  const bool narrow = element < single;
  const bool narrow_gradients = formulas == FormulaSet::Megatron && type == DType::Float16;
  return {element * sum.count, (narrow && !narrow_gradients ? single : element) * sum.count,
          moment_bytes(type, states) * sum.moments + (narrow ? single : 0) * sum.count, element * sum.frozen,
          element * sum.forward_only};
}

StateBytes sharded(StateBytes bytes, int zero, int shards) {
  if (zero >= 1) bytes.optimizer /= shards;
  if (zero >= 2) bytes.gradients /= shards;
  if (zero >= 3) bytes.weights /= shards;
  if (zero >= 3) bytes.frozen /= shards;
  if (zero >= 3) bytes.forward_only /= shards;
  return bytes;
}

int num_shards(const RunSpec& spec, const RunLayout& layout, RankGroup copies) {
  const int of_all = copies.size / layout.copies_in_pipe;
  const int shards = spec.sync.zero_group > 0 ? spec.sync.zero_group * layout.context : of_all;
  return shards == 1 ? 1 : shards * layout.copies_in_pipe;
}

std::vector<CopiedParameters> copied_parameters(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas,
                                                const StageParameters& parameters) {
  std::vector<CopiedParameters> all;
  const auto add = [&](ParameterSum sum, RankGroup copies) {
    if (sum.all() == 0) return;
    sum.moments *= served_share(spec, copies);
    const StateBytes bytes = state_bytes(spec.train.dtype, formulas, sum, spec.optimizer.state_dtype);
    const double summed = sum.reduced.summed > 0 ? sum.reduced.summed : bytes.gradients;
    all.push_back({bytes, summed, copies, num_shards(spec, layout, copies)});
  };
  add(parameters.shared, layout.gradient_group);
  add(parameters.experts, layout.expert_gradient_group);
  return all;
}

StateBytes held_bytes(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas,
                      const StageParameters& parameters) {
  // torchtitan keeps only float32 weights, which count as optimizer states here. FSDP shards all states.
  const bool fsdp = is_torchtitan(formulas);
  const int zero = fsdp && spec.sync.zero > 0 ? 3 : spec.sync.zero;
  StateBytes held;
  for (const CopiedParameters& part : copied_parameters(spec, layout, formulas, parameters)) {
    held += sharded(part.bytes, zero, part.shards);
  }
  if (fsdp) held.weights = 0;
  return held;
}

double served_share(const RunSpec& spec, RankGroup copies) {
  if (spec.sync.replication != ReplicationKind::ParameterServer) return 1;
  if (num_server_ranks(spec.sync) > 0) return 0;
  return std::ceil(spec.sync.servers / static_cast<double>(copies.size)) / spec.sync.servers;
}

namespace {

double master_bytes(const RunSpec& spec) { return master_bytes(spec.train.dtype); }

}  // namespace

double server_rank_bytes(const RunSpec& spec, const RunLayout& layout, const ParameterSum& of_replica) {
  const int servers = num_server_ranks(spec.sync);
  if (servers == 0) return 0;
  const double pushed = layout.gradient_group.size * of_replica.count, fetched = of_replica.moments;
  const double elements = 2 * of_replica.count + of_replica.moments + std::max(pushed, fetched);
  return master_bytes(spec) * elements * layout.tensor / layout.copies_in_pipe / servers;
}

double save_bytes(const RunSpec& spec, const ParameterSum& of_rank, RankGroup copies) {
  if (spec.sync.replication != ReplicationKind::ParameterServer) return 0;
  const int servers = num_server_ranks(spec.sync);
  if (servers == 0) {
    const double at_save = (1 + served_share(spec, copies)) * of_rank.moments;
    return std::max(master_bytes(spec) * of_rank.count,
                    master_bytes(spec) * at_save + kAnswerBytes * spec.sync.servers);
  }
  return master_bytes(spec) * (of_rank.moments + (of_rank.count + of_rank.moments) / servers) + kAnswerBytes;
}

double snapshot_bytes(const RunSpec& spec, const RunLayout& layout, const StageParameters& parameters) {
  if (!spec.checkpoint.async) return 0;
  const double of_moment = moment_bytes(spec.train.dtype, spec.optimizer.state_dtype);
  const auto of = [&](const ParameterSum& sum, RankGroup copies) {
    return (master_bytes(spec) * sum.count + of_moment * sum.moments) / copies.size;
  };
  return of(parameters.shared, layout.gradient_group) + of(parameters.experts, layout.expert_gradient_group);
}

double replication_bytes(const RunSpec& spec, RankGroup copies) {
  const double copy = master_bytes(spec);
  switch (spec.sync.replication) {
    case ReplicationKind::AllReduce:
    case ReplicationKind::LocalSgd:
      return 0;
    case ReplicationKind::DiLoCo:
      return 2 * copy;
    case ReplicationKind::ParameterServer:
      return (2 * served_share(spec, copies) + (spec.optimizer.clip_norm > 0 ? 1 : 0) +
              (spec.sync.push_every > 1 ? 1 : 0)) *
             copy;
  }
  return 0;
}

ParameterSum tied_parameters(const RunSpec& spec, const RunLayout& layout) {
  if (spec.model.output_weights == OutputWeights::Untied) return {};
  return parameters_of(layout.account->tokens, spec, layout).shared;
}

namespace {

// Returns the sum of parameters over parts of blocks, so many of each.
StageParameters sum_of(const std::vector<StageParameters>& parts, const std::vector<double>& counts) {
  StageParameters all;
  for (size_t part = 0; part < counts.size(); ++part) {
    all.shared += counts[part] * parts[part].shared;
    all.experts += counts[part] * parts[part].experts;
  }
  return all;
}

}  // namespace

PartParameters part_parameters(const RunSpec& spec, const RunLayout& layout) {
  const auto count = [&](const layout::PartAccount& part) { return parameters_of(part, spec, layout); };
  const layout::ModelAccount& model = *layout.account;
  PartParameters all{{},
                     {},
                     count(model.tokens).shared,
                     count(model.positions).shared,
                     count(model.last_norm).shared,
                     count(model.table).shared,
                     spec.model.output_weights};
  if (all.head == OutputWeights::Tied) all.tokens.forward_only = 0;  // the head reads them
  for (const layout::PartAccount& part : model.parts) all.parts.push_back(count(part));
  for (int layer = 0; layer < std::ssize(model.kind_of_layer); ++layer) {
    const StageParameters block = sum_of(all.parts, layers_load(model, layer, layer + 1).parts);
    const auto size = [](const StageParameters& of) { return std::pair(of.all(), of.count()); };
    if (size(block) > size(all.block)) all.block = block;
  }
  return all;
}

ParameterSum end_parameters(const PartParameters& parts, const StageLoad& load) {
  ParameterSum all;
  if (load.embedding) all += parts.tokens;
  if (load.embedding) all += parts.positions;
  if (load.head) all += parts.last_norm;
  if (load.head && (parts.head == OutputWeights::Untied || !load.embedding)) all += parts.table;
  return all;
}

StageParameters stage_parameters(const PartParameters& parts, const StageLoad& load) {
  StageParameters all = sum_of(parts.parts, load.parts);
  all.shared += end_parameters(parts, load);
  return all;
}

StageParameters stage_parameters(const RunSpec& spec, const RunLayout& layout, const StageLoad& load) {
  return stage_parameters(part_parameters(spec, layout), load);
}

}  // namespace braid::plan
