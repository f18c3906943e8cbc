// The interpreter of a graph that lists.
#include "braid/layout/listing.h"

#include <algorithm>
#include <map>
#include <set>

#include "braid/base/text.h"
#include "braid/layout/tensor_sums.h"
#include "braid/model/families.h"
#include "braid/model/op_table.h"
#include "braid/model/shape.h"
#include "braid/model/trained.h"

namespace braid::layout {
namespace {

class BlockLister {
 public:
  struct Layout {
    const RankExtents& rank;
    TensorSums sums;
  };
  BlockLister(const model::ModelGraph& graph, size_t block, const Layout& layout, Listing& all)
      : block_(graph.block(block)),
        name_(model::block_name(graph, block)),
        count_(graph.count_of(graph.blocks[block])),
        rank_(layout.rank),
        sums_(layout.sums),
        all_(all),
        begin_(all.ops.size()) {
    if (!all.ops.empty()) makers_[0] = all.ops.size() - 1;  // the block before makes the input
  }

  void list(const model::Op& op) {
    const model::OpAt at{block_, op};
    const model::OpRow& row = *op.row;
    ListedOp listed{.name = cat(name_, ".", all_.ops.size() - begin_),
                    .block = name_,
                    .count = count_,
                    .kind = std::string(word(op.kind)),
                    .rule = model::rule_text(at.block, op),
                    .shape = extents(at.out()).shape(at.out())};
    for (const int value : op.in) {
      if (makers_.contains(value)) listed.reads.push_back(makers_[value]);
    }
    makers_[op.out] = all_.ops.size();
    for (const model::Param& param : op.params) {
      listed.parameters.push_back(param.name);
      if (!model::is_trained(param)) listed.frozen.push_back(param.name);
    }
    listed.flops = row.flops(at).at(rank_.all);
    if (has_gradient_[op.out]) list_kept(at, listed);
    all_.ops.push_back(std::move(listed));
  }

  // Lists the letters of the op that tensor ranks split, and the sums and gathers that follow.
  void list_split(const model::Op& op, Sequence tokens) {
    const std::set<char> letters = split_letters(block_, op);
    all_.ops.back().split = std::string(letters.begin(), letters.end());
    const bool splits = tokens == Sequence::Split;
    list_input(op, splits && gathers_tokens(block_, op));
    for (const model::Param& of_op : op.params) {
      const bool is_part = sums_gradient_of(block_, op, of_op) || (splits && splits_tokens(block_, op));
      if (is_part && model::is_trained(of_op)) add(of_op.name, Pass::Backward, of_op.dims).in_float = true;
    }
    if (!summed_[op.out]) return;
    const model::Dims& out = block_.values[op.out];
    const bool scatters = splits && splits_tokens(out);
    const bool in_float = sums_in_float(op, sums_);
    add(called(op), Pass::Forward, out, scatters ? Kind::ReduceScatter : Kind::AllReduce).in_float = in_float;
    if (scatters && has_gradient_[op.out]) add(called(op), Pass::Backward, out, Kind::AllGather);
  }

  // Lists the sums of the gradients of key heads that tensor ranks hold copies of.
  void list_copies(const model::Op& op) {
    for (const model::Param& param : op.params) {
      if (!model::is_trained(param)) continue;
      model::Dims copies = param.dims;
      for (model::Dim& dim : copies) {
        if (split_letters({dim}).contains('k')) std::erase_if(dim.segments, has_queries);
      }
      const bool any = std::ranges::none_of(copies, [](const model::Dim& dim) { return dim.segments.empty(); });
      if (any && split_letters(copies).contains('k')) {
        add(param.name, Pass::Backward, copies).in_float = true;
      }
    }
  }

  // Lists what moves tokens between ranks: to other context ranks, and to their experts and back.
  void list_moved(const model::Op& op, const SharingRanks& ranks) {
    const model::OpAt at{block_, op};
    if (op.kind == model::OpKind::Attention && ranks.context > 1) list_attention(at, ranks);
    const bool routes = op.kind == model::OpKind::Dispatch || op.kind == model::OpKind::Combine;
    if (routes && ranks.expert > 1) {
      const model::Dims& rows = op.kind == model::OpKind::Dispatch ? at.out() : at.in();
      add_over(op, mesh::Axis::Expert, {Kind::AllToAll, rank_.between.num_elements(rows)});
    }
  }

 private:
  using Kind = ListedCollective::Kind;
  using Pass = ListedCollective::Pass;

  static std::string called(const model::Op& op) {
    return op.params.empty() ? std::string(word(op.kind)) : op.params[0].name;
  }

  void list_kept(const model::OpAt& at, ListedOp& listed) {
    const model::OpRow& row = *at.op.row;
    const bool keeps = model::keeps_input(block_, at.op) && kept_.insert(at.op.in[0]).second;
    listed.kept_elements = (keeps ? size(at.in()) : 0) + row.copies(at).at(rank_.all);
    listed.kept_floats = row.statistics(at).at(split_letters(at.in()).empty() ? rank_.between : rank_.all);
  }

  void list_input(const model::Op& op, bool gathers) {
    const model::Dims& input = block_.values[op.in[0]];
    const bool again = gathers && op.kind == model::OpKind::Linear && model::is_trained(op.params[0]);
    if (again) add(called(op), Pass::Backward, input, Kind::AllGather);
    const bool sums = sums_input_gradient(block_, op), by_value = sums_ == TensorSums::ByValue;
    if ((!sums && !gathers) || (!copied_.insert(op.in[0]).second && !by_value)) return;
    if (gathers) add(called(op), Pass::Forward, input, Kind::AllGather);
    if (!sums || !has_gradient_[op.in[0]]) return;
    add(called(op), Pass::Backward, input, gathers ? Kind::ReduceScatter : Kind::AllReduce).in_float = by_value;
  }

  const model::Extents& extents(const model::Dims& dims) const {
    return split_letters(dims).empty() ? rank_.between : rank_.all;
  }
  static bool has_queries(const std::string& segment) { return segment.find('m') != segment.npos; }
  double size(const model::Dims& dims) const { return extents(dims).num_elements(dims); }
  ListedCollective& add(const std::string& param, Pass pass, const model::Dims& dims, Kind kind = Kind::AllReduce) {
    return all_.collectives.emplace_back(ListedCollective{.kind = kind,
                                                          .pass = pass,
                                                          .op = all_.ops.size() - 1,
                                                          .block = name_,
                                                          .param = param,
                                                          .elements = rank_.all.num_elements(dims)});
  }
  struct Moved {
    Kind kind;
    double elements;
    int forward = 1, backward = 1;  // calls in each pass
  };
  // Adds calls in both passes over an axis whose ranks have other tokens.
  void add_over(const model::Op& op, mesh::Axis axis, const Moved& moved) {
    ListedCollective call{.kind = moved.kind, .pass = Pass::Forward, .axis = axis, .op = all_.ops.size() - 1};
    call.block = name_, call.param = all_.ops.back().kind, call.elements = moved.elements, call.times = moved.forward;
    all_.collectives.push_back(call);
    if (!has_gradient_[op.out]) return;
    call.pass = Pass::Backward, call.times = moved.backward;
    all_.collectives.push_back(call);
  }
  void list_attention(const model::OpAt& at, const SharingRanks& ranks) {
    const double inputs = size(at.in()), outputs = size(at.out());
    const auto add_context = [&](const Moved& moved) { add_over(at.op, mesh::Axis::Context, moved); };
    const int ring = ranks.context / ranks.exchange;
    const double keys_and_values = inputs - outputs;
    if (ranks.exchange > 1) {
      add_context({Kind::AllToAll, inputs});
      add_context({Kind::AllToAll, outputs});
    }
    if (ring == 1) return;
    const double moved = ring == 2 ? 0.5 : 1;  // the most that one of the ranks moves (nn/ring_attention.h)
    add_context({Kind::SendReceive, moved * inputs});
    add_context({Kind::SendReceive, moved * outputs});
    if (ranks.form == ContextParallel::AllGather) {
      add_context({Kind::AllGather, ring * keys_and_values, 1, 2});
    } else {
      add_context({Kind::SendReceive, keys_and_values, ring - 1, 2 * ring - 1});
    }
  }

  const model::BlockGraph& block_;
  const std::string name_;
  const double count_;
  const RankExtents& rank_;
  const TensorSums sums_;
  Listing& all_;
  const size_t begin_;  // of the block in the list
  const std::vector<bool> summed_ = summed_values(block_, sums_), has_gradient_ = model::values_with_gradient(block_);
  std::set<int> kept_, copied_;   // values that an op before keeps, or whose gradient is summed for it
  std::map<int, size_t> makers_;  // the op in the list that makes a value
};

}  // namespace

Listing listing_of(const ModelSpec& spec, const SharingRanks& ranks, double picked) {
  return listing_of(spec, model::graph_of(spec), ranks, picked);
}

Listing listing_of(const ModelSpec& spec, const model::ModelGraph& graph, const SharingRanks& ranks, double picked) {
  const RankExtents rank = rank_extents(account_of(spec, graph, picked), ranks);
  Listing all;
  for (const size_t block : graph.first_blocks()) {
    BlockLister lister(graph, block, {rank, ranks.sums}, all);
    for (const model::Op& op : graph.block(block).ops) {
      lister.list(op);
      if (ranks.tensor > 1) lister.list_split(op, ranks.between);
      if (ranks.tensor > model::num_kv_heads(spec)) lister.list_copies(op);
      lister.list_moved(op, ranks);
    }
  }
  return all;
}

}  // namespace braid::layout
