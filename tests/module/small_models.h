// Two small models of torch modules, what they train on, and how parameters are compared.
#pragma once

#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>

#include <utility>
#include <vector>

#include "braid/module/layer_list.h"

namespace braid::small_models {

inline constexpr int kSteps = 4, kRows = 72;  // in equal parts for all ranks and passes

struct Minibatch {
  at::Tensor inputs, classes;
};

inline std::vector<Minibatch> minibatches(at::IntArrayRef row_shape) {
  torch::manual_seed(3);
  std::vector<Minibatch> all;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<int64_t> shape{kRows};
    shape.insert(shape.end(), row_shape.begin(), row_shape.end());
    all.push_back({torch::randn(shape, at::kDouble), torch::randint(3, {kRows})});
  }
  return all;
}

inline LayerList perceptron() {
  torch::manual_seed(1);
  LayerList layers;
  layers.add(torch::nn::Linear(5, 16)).add(torch::nn::Tanh()).add(torch::nn::Linear(16, 3));
  for (int l = 0; l < layers.size(); ++l) layers[l].module->to(at::kDouble);
  return layers;
}

inline LayerList convolutions() {
  torch::manual_seed(2);
  LayerList layers;
  layers.add("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 4, 3).padding(1)))
      .add("relu", torch::nn::ReLU())
      .add("norm", torch::nn::GroupNorm(2, 4))
      .add("pool", torch::nn::AdaptiveAvgPool2d(2))
      .add("flat", [](const at::Tensor& x) { return x.flatten(1); })
      .add("head", torch::nn::Linear(16, 3));
  for (int l = 0; l < layers.size(); ++l) {
    if (layers[l].module) layers[l].module->to(at::kDouble);
  }
  return layers;
}

inline at::Tensor forward(const LayerList& layers, at::Tensor x) {
  Tensors tensors{std::move(x)};
  for (int l = 0; l < layers.size(); ++l) tensors = layers[l].forward(tensors);
  return tensors.front();
}

inline Tensors all_parameters(const LayerList& layers) {
  Tensors all;
  for (int l = 0; l < layers.size(); ++l) {
    if (!layers[l].module) continue;
    for (const at::Tensor& parameter : layers[l].module->parameters()) all.push_back(parameter);
  }
  return all;
}

inline Tensors copies(const LayerList& layers) {
  Tensors all;
  for (const at::Tensor& parameter : all_parameters(layers)) all.push_back(parameter.detach().clone());
  return all;
}

using MakeModel = LayerList (*)();
struct Model {
  const char* name;
  MakeModel make;
  std::vector<int64_t> row_shape;
};
inline const Model kModels[] = {{"mlp", perceptron, {5}}, {"cnn", convolutions, {2, 6, 6}}};

inline at::Tensor share(const at::Tensor& rows, int part, int parts) {
  return rows.chunk(parts)[static_cast<size_t>(part)];
}

inline void expect_near(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_LT((got[i] - want[i]).abs().max().item<double>(), 1e-10) << "parameter " << i;
  }
}

}  // namespace braid::small_models
