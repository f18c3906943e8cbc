// Blocks of the residual stream made of two branches. A block runs whole or one half at a time, so that a model can be
// cut between the branches.
//
//   whole: x ---- norm, layer --(+ norm)-- layer --(+)        halves: x ---- norm, layer --(+) | ---- norm, layer --(+)
//             \____________________/\__________/                        \______________/          \______________/
#pragma once

#include <memory>

#include "braid/nn/model.h"
#include "braid/nn/norms.h"
#include "braid/nn/residual_norm.h"

namespace braid::nn {

// The parts of x + dropout(layer(norm(x)) + bias). HalfBlock and WholeBlock combine them. Between two branches,
// WholeBlock fuses the addition of the first with the norm of the second.
template <class Layer>
class ResidualBranch {
 public:
  struct Options {
    Norm::Options norm;
    typename Layer::Options layer;
    // Bias of the layer's last product, added together with the branch; null: none.
    const param::Parameter* bias = nullptr;
    Dropout::Options dropout;
  };
  ResidualBranch(const Options& options, const RankContext& rank)
      : norm_(options.norm, rank),
        layer_(options.layer, rank),
        bias_(options.bias),
        dropout_(options.dropout),
        rank_(rank) {}

  const Norm& norm() const { return norm_; }
  Branch forward(const Activation& normed_btc, const Microbatch& m) const {
    return dropped({layer_.forward(normed_btc, m), bias_}, dropout_, rank_, m);
  }

 private:
  Norm norm_;
  Layer layer_;
  const param::Parameter* bias_;
  Dropout dropout_;
  RankContext rank_;
};

template <class Only>
class HalfBlock final : public Block {
 public:
  HalfBlock(const typename Only::Options& options, const RankContext& rank) : branch_(options, rank), rank_(rank) {}

  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& m) override {
    const Residual x = branch_.norm().open(x_btc, m);
    return join(x.sum_btc, branch_.forward(x.normed_btc, m), rank_, m);
  }

 private:
  Only branch_;
  RankContext rank_;
};

template <class First, class Second>
class WholeBlock final : public Block {
 public:
  struct Options {
    typename First::Options first;
    typename Second::Options second;
  };
  WholeBlock(const Options& options, const RankContext& rank)
      : first_(options.first, rank), second_(options.second, rank), rank_(rank) {}

  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& m) override {
    const Residual x = first_.norm().open(x_btc, m);
    const Residual y = second_.norm().join(x.sum_btc, first_.forward(x.normed_btc, m), m);
    return join(y.sum_btc, second_.forward(y.normed_btc, m), rank_, m);
  }

 private:
  First first_;
  Second second_;
  RankContext rank_;
};

// Makes `part` of WholeBlock<First, Second>: the whole block, or the half of one branch. For a half, only that branch's
// options are made, because the rank may lack the parameters of the other.
template <class First, class Second, class FirstOptions, class SecondOptions>
std::unique_ptr<Block> block_part(layout::BlockPart part, const FirstOptions& first, const SecondOptions& second,
                                  const RankContext& rank) {
  if (part == layout::BlockPart::Attention) return std::make_unique<HalfBlock<First>>(first(), rank);
  if (part == layout::BlockPart::FeedForward) return std::make_unique<HalfBlock<Second>>(second(), rank);
  using Whole = WholeBlock<First, Second>;
  return std::make_unique<Whole>(typename Whole::Options{first(), second()}, rank);
}

}  // namespace braid::nn
