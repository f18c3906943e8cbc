// A model one of whose blocks multiplies the gradient that passes it, or its own result, by a number in some steps:
// what a spike looks like from inside. For tests of what is done about one.
#pragma once

#include <memory>
#include <utility>

#include "braid/layout/parameters.h"
#include "braid/nn/model.h"

namespace braid {

// Where and when: set before ranks start, read by all. Steps count from 1, as a trainer counts its own.
struct Poison {
  static constexpr int kBlock = 2;  // of the model's list: "blocks.1"

  int microbatches = 1;  // of a rank and step
  int first = 0, last = 0;
  double gradient = 1;
};
inline Poison poison;

class PoisonedBlock final : public nn::Block {
 public:
  explicit PoisonedBlock(std::unique_ptr<nn::Block> inner) : inner_(std::move(inner)) {}

  at::Tensor forward(const at::Tensor& x_btc, const nn::Microbatch& m) override {
    at::Tensor y_btc = inner_->forward(x_btc, m);
    const int step = 1 + num_forwards_++ / poison.microbatches;
    if (poison.first <= step && step <= poison.last) {
      y_btc.register_hook([](const at::Tensor& gradient) { return gradient.mul(poison.gradient); });
    }
    return y_btc;
  }

 private:
  std::unique_ptr<nn::Block> inner_;
  int num_forwards_ = 0;
};

inline std::unique_ptr<nn::Block> poisoned_block(const ModelSpec& spec, nn::ModelPiece piece, param::ParamStore& store,
                                                 const nn::RankContext& rank) {
  auto inner = nn::model_block(spec, piece, store, rank);
  if (piece.block != Poison::kBlock) return inner;
  return std::make_unique<PoisonedBlock>(std::move(inner));
}

inline constexpr nn::ModelMaker kPoisoned{layout::model_params, poisoned_block};

}  // namespace braid
