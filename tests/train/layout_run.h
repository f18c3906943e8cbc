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
#include "braid/train/trainer.h"

namespace braid {

// What must not depend on the layout.
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
Corpus tiny_corpus();

// spec.train.steps steps on thread ranks, of the model of spec's family or of what `maker` makes.
LayoutResult train_layout(const RunSpec& spec);
LayoutResult train_layout(const RunSpec& spec, const ModelMaker& maker);

// A schedule on a mesh, printed as the name of a test.
struct ScheduleOnMesh {
  std::string schedule;
  MeshSpec mesh;
};
std::ostream& operator<<(std::ostream& out, const ScheduleOnMesh& layout);

// Runs `body` with a trainer on every rank of spec's mesh.
void on_every_rank(const RunSpec& spec, const std::function<void(Trainer&)>& body);
void on_every_rank(const RunSpec& spec, const ModelMaker& maker, const std::function<void(Trainer&)>& body);

// Copies what this rank has of every parameter to `global`: the weights that its layers compute with (where they are
// shared out, those it owns), or of what it owns the masters or the gradients. One rank at a time.
enum class Held { Weights, Masters, Gradients };
void collect(Trainer& trainer, std::map<std::string, at::Tensor>& global, Held what);

// The largest |a - b| relative to the largest |b|, over all tensors; names must be equal.
double largest_difference(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b);
bool same_bits(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b);

}  // namespace braid
