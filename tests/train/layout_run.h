// Trains a tiny model on some mesh and hands back global tensors, so that layouts can be compared.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "braid/data/corpus.h"
#include "braid/spec/run_spec.h"
#include "braid/train/held_tensors.h"
#include "braid/train/trainer.h"

namespace braid {

// The results that must not depend on the layout.
struct LayoutResult {
  std::vector<double> losses, grad_norms;
  std::vector<uint64_t> sample_hashes;
  std::vector<std::map<std::string, double>> auxiliary_losses;  // by step
  std::vector<std::map<std::string, std::vector<double>>> auxiliary_counts;
  std::map<std::string, at::Tensor> first_gradients;  // global, of step 1, before clipping
  std::map<std::string, at::Tensor> params;           // global, after the last step
};

// A model with `heads` heads of 4 features, 8 blocks, vocabulary 19, in float64; batch of `batch` sequences.
RunSpec tiny_spec(int heads, int batch);

// Tokens that a model can learn something from.
data::Corpus tiny_corpus();
// Returns tiny_corpus(), in documents shorter than two sequences where attention sees them.
data::Corpus corpus_for(const RunSpec& spec);

// spec.train.steps steps on thread ranks, of the model of spec's family or of what `maker` makes.
LayoutResult train_layout(const RunSpec& spec);
LayoutResult train_layout(const RunSpec& spec, const nn::ModelMaker& maker);

// A schedule on a mesh, printed as the name of a test.
struct ScheduleOnMesh {
  std::string schedule;
  MeshSpec mesh;
};
std::ostream& operator<<(std::ostream& out, const ScheduleOnMesh& layout);

// Runs `body` with a trainer on every rank of spec's mesh.
void on_every_rank(const RunSpec& spec, const std::function<void(train::Trainer&)>& body);
void on_every_rank(const RunSpec& spec, const nn::ModelMaker& maker, const std::function<void(train::Trainer&)>& body);

// Copies what this rank holds of every parameter to `global`. One rank at a time.
using train::Held;
void collect(train::Trainer& trainer, std::map<std::string, at::Tensor>& global, Held what);

// The largest |a - b| relative to the largest |b|, over all tensors; names must be equal.
double largest_difference(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b);
bool same_bits(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b);

// The largest |a - b| over all tensors relative to the largest |b| over all tensors; names must be equal.
double difference_to_largest(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b);

// Bounds for what two layouts may differ by, relative to the loss, to the largest gradient of all and to the largest
// number of each tensor. Tensor ranks round partial sums, hence several units in the last place of 16-bit types.
struct Rounding {
  double losses, gradients, params;
};
Rounding rounding_of(DType dtype);
void expect_near(const LayoutResult& got, const LayoutResult& want, const Rounding& rounding);

// Gradient descent without weight decay at the rate and with the clipping and groups of `optimizer`. AdamW divides the
// gradient of a key's bias, which is nothing but rounding, by its own size; here a difference of gradients stays one.
// In 16-bit types two steps move about half of the tensors by more than the bound of params: what the others do, their
// gradients and the bits of reproducible mode say.
OptimizerSpec plain_descent(const OptimizerSpec& optimizer);

}  // namespace braid
