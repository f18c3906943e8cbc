// The pass over the ops of a piece.
#include "braid/nn/lower.h"

#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/model/families.h"
#include "braid/nn/activation_functions.h"
#include "braid/nn/call_list.h"
#include "braid/nn/embedding.h"
#include "braid/nn/head_calls.h"
#include "braid/nn/key_value_cache.h"
#include "braid/nn/language_head.h"
#include "braid/nn/linear.h"
#include "braid/nn/op_cursor.h"
#include "braid/nn/opaque.h"
#include "braid/nn/residual_calls.h"

namespace braid::nn {
namespace {

using model::Op;
using model::OpKind;

class Lowering {
 public:
  Lowering(const ModelSpec& spec, const model::ModelGraph& graph, const ModelPiece& piece, param::ParamStore& store,
           const RankContext& rank)
      : spec_(spec),
        graph_(graph),
        block_(graph.block(piece.block)),
        number_(piece.block),
        store_(store),
        rank_(rank),
        params_(graph, number_, store),
        heads_(spec, rank),
        residuals_(spec, block_, number_, params_, rank),
        ops_(block_, piece),
        calls_(block_, piece.block, rank, store.flat_data().scalar_type()) {}

  std::unique_ptr<Block> block() {
    const int output = ops_.output();
    calls_.begin(ops_.input());
    while (const Op* const op = ops_.take()) {
      calls_.begin_op(comm::OpName(model::op_name(graph_, number_, *op)));
      lower(*op);
    }
    return std::move(calls_).block(output);
  }

 private:
  void lower(const Op& op) {
    switch (op.kind) {
      case OpKind::Lookup:
        return lookup(op);
      case OpKind::Positions:
        return positions(op);
      case OpKind::TokenTypes:
        return token_types(op);
      case OpKind::Dropout:
        return dropout(op);
      case OpKind::Residual:
        return join({op.in[0]}, op);
      case OpKind::LayerNorm:
      case OpKind::RmsNorm:
        return emit(op, residuals_.norm(op));
      case OpKind::HeadNorm:
        return head_norm(op);
      case OpKind::Linear:
        return linear(op);
      case OpKind::Bias:
        return bias(op);
      case OpKind::Rotary:
        return emit(op, heads_.rotary(op, store_.flat_data().options()));
      case OpKind::Attention:
        return attention(op);
      case OpKind::SwiGlu:
      case OpKind::GeGlu:
        return gated(op);
      case OpKind::Opaque:
        return opaque(op);
      case OpKind::PickRows:
        return pick_rows(op);
      case OpKind::Loss:
        return loss(op);
      case OpKind::Gelu:
      case OpKind::GeluErf:
      case OpKind::Route:
      case OpKind::Dispatch:
      case OpKind::Combine:
        check(false, cat("an op that is executed, not ", op.kind));
    }
  }

  // Adds a call that reads the op's inputs and writes its output.
  void emit(const Op& op, Call::Run run) { calls_.add({op.in[0], op.out}, op.out, std::move(run)); }

  void lookup(const Op& op) {
    const auto run = [y = op.out, rows = params_.use(op.params[0]), scale = op.scale, rank = rank_](
                         Frame& frame, const Microbatch& m) { frame[y] = nn::lookup(rows, scale, rank, m); };
    emit(op, run);
  }

  void positions(const Op& op) {
    emit(op, [x = op.in[0], y = op.out, table = params_.use(op.params[0]), rank = rank_](Frame& frame,
                                                                                         const Microbatch& m) {
      const at::Tensor& x_btc = frame[x].value;
      const GradTarget weight{&rank.weight_grads, table, m.micro};
      frame[y] = m.cache ? add_positions_at_(x_btc, table.param->data, m.cache->places_n())
                         : add_positions_(x_btc, weight, rank.token_part().number * x_btc.size(1));
    });
  }

  void token_types(const Op& op) {
    emit(op, [x = op.in[0], y = op.out, table = params_.use(op.params[0]), rank = rank_](Frame& frame,
                                                                                         const Microbatch& m) {
      frame[y] = add_first_type_(frame[x].value, {&rank.weight_grads, table, m.micro});
    });
  }

  void pick_rows(const Op& op) {
    const int x = calls_.input_of(op);
    calls_.add({x, op.out}, op.out, [=, y = op.out](Frame& frame, const Microbatch& m) {
      frame[y] = nn::pick_rows(frame[x].value, m.rows_bj);
    });
  }

  void dropout(const Op& op) {
    if (const Op* const residual = ops_.take(op.out, OpKind::Residual)) {
      return join({op.in[0], nullptr, residuals_.dropout_of(op)}, *residual);
    }
    emit(op, residuals_.dropout(op));
  }

  // Lowers the residual, and the norm behind it.
  void join(const BranchOps& branch, const Op& residual) {
    const int x = residual.in[1], sum = residual.out;
    const Op* const norm = calls_.sums(sum) ? nullptr : ops_.take_norm(sum);
    if (!norm) return calls_.add({branch.value, x, sum}, sum, residuals_.join(branch, residual));
    calls_.add({branch.value, x, sum, norm->out}, norm->out, residuals_.join_and_norm(branch, residual, *norm));
  }

  void linear(const Op& op) {
    const int x = calls_.input_of(op);
    int y = op.out;
    const param::Parameter* added = nullptr;
    const Op* const bias = ops_.next_reader(y, OpKind::Bias);
    const bool is_taken =
        bias && (ops_.next_reader(bias->out, OpKind::Gelu, 1) || ops_.next_reader(bias->out, OpKind::GeluErf, 1) ||
                 ops_.leads_to_residual(bias->out, 1));
    if (bias && !is_taken && !calls_.sums(y)) {
      ops_.take();
      y = bias->out;
      added = &params_[bias->params[0]];
    }
    const model::Dims& dims = op.params[0].dims;
    const bool is_part = rank_.weight_grads.parts() && rank_.tensor.size() > 1 && calls_.sums(y);
    calls_.add({x, y}, y,
               [=, weight = params_.use(op.params[0]), inner = inner_parts(spec_, dims[1], rank_),
                outputs = inner_parts(spec_, dims[0], rank_), rank = rank_,
                sums_gradient = calls_.sums_input_gradient(op)](Frame& frame, const Microbatch& m) {
                 frame[y] = nn::linear(frame[x], {weight, added, &rank.weight_grads, m.micro,
                                                  rows_of(frame[x].value, m), inner, outputs, is_part, sums_gradient});
               });
  }

  void bias(const Op& op) {
    const param::Parameter* const added = &params_[op.params[0]];
    for (const OpKind kind : {OpKind::Gelu, OpKind::GeluErf}) {
      const Op* const gelu = ops_.take(op.out, kind);
      if (!gelu) continue;
      const auto form = kind == OpKind::Gelu ? kernels::GeluForm::Tanh : kernels::GeluForm::Erf;
      return calls_.add(
          {op.in[0], gelu->out}, gelu->out,
          [=, x = op.in[0], y = gelu->out, rank = rank_](Frame& frame, const Microbatch& m) {
            frame[y] = bias_gelu(frame[x].value, {&rank.weight_grads, {added, 0}, m.micro}, rank.keep, form);
          });
    }
    if (ops_.leads_to_residual(op.out, 0)) {
      const Op* const drop = ops_.take(op.out, OpKind::Dropout);
      const Op* const residual = ops_.take(drop ? drop->out : op.out, OpKind::Residual);
      return join({op.in[0], added, drop ? residuals_.dropout_of(*drop) : Dropout({})}, *residual);
    }
    emit(op, [=, x = op.in[0], y = op.out, rank = rank_](Frame& frame, const Microbatch& m) {
      frame[y] = add_bias_(frame[x].value, {&rank.weight_grads, {added, 0}, m.micro});
    });
  }

  void gated(const Op& op) {
    const auto activation = op.kind == OpKind::SwiGlu ? swiglu : geglu;
    emit(op, [x = op.in[0], y = op.out, activation, keep = rank_.keep](Frame& frame, const Microbatch&) {
      frame[y] = activation(frame[x].value, keep);
    });
  }

  void head_norm(const Op& op) {
    emit(op, heads_.norm(op, {&params_[op.params[0]], &params_[op.params[1]], spec_.norm_eps}));
  }

  void attention(const Op& op) {
    emit(op, heads_.attention(op, {static_cast<int>(number_), static_cast<int>(&op - block_.ops.data())}));
  }

  void opaque(const Op& op) {
    OpaqueCall call = opaque_call(spec_, block_, op, rank_.tensor);
    for (size_t i = 0; i < op.params.size(); ++i)
      call.params[i].target = {&rank_.weight_grads, params_.use(op.params[i])};
    const int x = calls_.input_of(op);
    calls_.add({x, op.out}, op.out, [=, y = op.out](Frame& frame, const Microbatch& m) {
      OpaqueCall of_micro = call;
      for (OpaqueParam& param : of_micro.params) param.target.micro = m.micro;
      frame[y] = nn::opaque(frame[x].value, of_micro);
    });
  }

  void loss(const Op& op) {
    const param::Parameter* const bias = op.params.size() > 1 ? &params_[op.params[1]] : nullptr;
    const LanguageHead head({.weight = params_.use(op.params[0]),
                             .vocab = spec_.vocab,
                             .bias = bias,
                             .cap = op.cap,
                             .sums_gradient = calls_.sums_input_gradient(op)},
                            rank_);
    const int x = calls_.input_of(op);
    calls_.observe({ValueKind::Logits, static_cast<int>(number_), op.out}, x,
                   [head](const at::Tensor& x_btc, const Microbatch& m) { return head.logits(x_btc, m); });
    calls_.add({x, op.out}, op.out,
               [=, y = op.out](Frame& frame, const Microbatch& m) { frame[y] = head.forward(frame[x].value, m); });
  }

  const ModelSpec& spec_;
  const model::ModelGraph& graph_;
  const model::BlockGraph& block_;
  const size_t number_;
  param::ParamStore& store_;
  const RankContext rank_;
  const OpParams params_;
  const HeadCalls heads_;
  const ResidualCalls residuals_;
  OpCursor ops_;
  CallList calls_;
};

}  // namespace

std::unique_ptr<Block> lower(const ModelSpec& spec, const model::ModelGraph& graph, const ModelPiece& piece,
                             param::ParamStore& store, const RankContext& rank) {
  check(0 <= piece.block && piece.block < std::ssize(graph.blocks), "a block of the model");
  return Lowering(spec, graph, piece, store, rank).block();
}

}  // namespace braid::nn
