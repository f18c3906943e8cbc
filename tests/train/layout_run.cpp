// Global tensors are put together from every rank's pieces under a lock.
#include "tests/train/layout_run.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>

#include "braid/base/seeds.h"
#include "braid/comm/local/run_ranks.h"

namespace braid {

RunSpec tiny_spec(int heads, int batch) {
  RunSpec spec;
  spec.model.layers = 8;
  spec.model.heads = heads;
  spec.model.width = heads * 4;
  spec.model.context = 6;
  spec.model.vocab = 19;
  spec.model.vocab_multiple = 1;
  spec.model.init_std = 0.2;
  spec.sync.bucket_mb = 0.02;
  spec.sync.first_bucket_mb = 0.01;
  spec.optimizer.lr = 0.01;
  spec.optimizer.clip_norm = 0.5;
  // The gradient of a key's bias is zero but for rounding, which AdamW divides by its own size: with an eps near that
  // size, two layouts would differ by what their roundings happen to be.
  spec.optimizer.eps = 1e-6;
  spec.train.steps = 3;
  spec.train.batch = batch;
  spec.train.microbatch = 1;
  spec.train.dtype = DType::Float64;
  spec.train.eval_sequences = batch;
  return spec;
}

namespace {

// Adds tokens to `all`, in documents of 1 to `longest` tokens.
void add_documents(std::span<const int> tokens, size_t longest, data::MemoryTokens& all) {
  for (uint64_t document = 0; !tokens.empty(); ++document) {
    const size_t length = std::min<size_t>(1 + random_bits(6, document) % longest, tokens.size());
    all.add_document(tokens.first(length));
    tokens = tokens.subspan(length);
  }
}

// Returns a corpus whose parts are cut by `cut`.
template <class Cut>
data::Corpus corpus_cut_by(const Cut& cut) {
  std::vector<int> tokens;
  for (int i = 0; i < 2000; ++i) {
    tokens.push_back(static_cast<int>((i * 3 + random_bits(5, static_cast<uint64_t>(i)) % 4) % 19));
  }
  const auto train = std::make_shared<data::MemoryTokens>(19), validation = std::make_shared<data::MemoryTokens>(19);
  cut(std::span<const int>(tokens), *train);
  cut(std::span<const int>(tokens).first(300), *validation);
  data::Corpus corpus{{{train, 1}}, {{validation, 1}}, 1};
  corpus.mask_tokens = {18, 17, 16, 15, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}};
  return corpus;
}

}  // namespace

data::Corpus corpus_for(const RunSpec& spec) {
  if (spec.data.attention != AttentionMask::Document) return tiny_corpus();
  const auto longest = static_cast<size_t>(2 * spec.model.context - 1);
  return corpus_cut_by([=](std::span<const int> part, data::MemoryTokens& all) { add_documents(part, longest, all); });
}

data::Corpus tiny_corpus() {
  return corpus_cut_by([](std::span<const int> part, data::MemoryTokens& all) { all.add_document(part); });
}

std::ostream& operator<<(std::ostream& out, const ScheduleOnMesh& layout) {
  std::string name = layout.schedule == "1f1b" ? "one_f_one_b" : layout.schedule;
  for (char& c : name) c = c == '-' ? '_' : c;
  return out << name << "_pipe" << layout.mesh.pipe << "_data" << layout.mesh.data << "_tensor" << layout.mesh.tensor;
}

void on_every_rank(const RunSpec& spec, const std::function<void(train::Trainer&)>& body) {
  on_every_rank(spec, nn::model_maker(spec.model), body);
}

void on_every_rank(const RunSpec& spec, const nn::ModelMaker& maker, const std::function<void(train::Trainer&)>& body) {
  const data::Corpus corpus = corpus_for(spec);
  run_ranks(static_cast<int>(spec::num_world_ranks(spec)), [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    train::on_mesh(spec, world, [&](const train::RunWorld& roles) {
      train::Trainer trainer(spec, corpus, roles, maker);
      body(trainer);
    });
  });
}

void collect(train::Trainer& trainer, std::map<std::string, at::Tensor>& global, Held what) {
  train::visit_held(trainer.model().params(), what, [&](const auto& param, const at::Tensor& part, const auto& place) {
    train::copy_part(part, place, global[param.name]);
  });
}

LayoutResult train_layout(const RunSpec& spec) { return train_layout(spec, nn::model_maker(spec.model)); }

LayoutResult train_layout(const RunSpec& spec, const nn::ModelMaker& maker) {
  LayoutResult result;
  std::mutex lock;
  on_every_rank(spec, maker, [&](train::Trainer& trainer) {
    const bool first_rank = trainer.groups().world.rank() == 0;
    for (int step = 0; step < spec.train.steps; ++step) {
      const train::StepReport report = trainer.step();
      const std::scoped_lock hold(lock);
      if (step == 0) collect(trainer, result.first_gradients, Held::Gradients);
      if (!first_rank) continue;
      result.losses.push_back(report.loss);
      result.grad_norms.push_back(report.grad_norm);
      result.sample_hashes.push_back(report.sample_hash);
      result.auxiliary_losses.push_back(report.auxiliary_losses);
      result.auxiliary_counts.push_back(report.auxiliary_counts);
    }
    const std::scoped_lock hold(lock);
    collect(trainer, result.params, Held::Weights);
  });
  return result;
}

double largest_difference(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  double largest = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (const auto& [name, tensor] : a) {
    const at::Tensor& other = b.at(name);
    const double scale = std::max(1e-3, other.abs().max().item<double>());
    const double difference = tensor.sub(other).abs().max().item<double>() / scale;
    if (!(difference <= largest))
      largest = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
  }
  return largest;
}

bool same_bits(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    if (!tensor.equal(b.at(name))) return false;
  }
  return true;
}

double difference_to_largest(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  double difference = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity(), largest = 0;
  for (const auto& [name, tensor] : a) {
    const at::Tensor other = b.at(name).to(at::kDouble);
    const double here = tensor.to(at::kDouble).sub(other).abs().max().item<double>();
    difference = std::max(difference, std::isnan(here) ? std::numeric_limits<double>::infinity() : here);
    largest = std::max(largest, other.abs().max().item<double>());
  }
  return difference / largest;
}

Rounding rounding_of(DType dtype) {
  if (dtype == DType::BFloat16) return {4.0 / 256, 8.0 / 256, 4.0 / 256};
  if (dtype == DType::Float16) return {4.0 / 2048, 8.0 / 2048, 4.0 / 2048};
  return {1e-10, 1e-10, 1e-10};
}

void expect_near(const LayoutResult& got, const LayoutResult& want, const Rounding& rounding) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], rounding.losses * want.losses[i]);
  EXPECT_LT(difference_to_largest(got.first_gradients, want.first_gradients), rounding.gradients);
  EXPECT_LT(largest_difference(got.params, want.params), rounding.params);
}

OptimizerSpec plain_descent(const OptimizerSpec& optimizer) {
  OptimizerSpec plain;
  plain.kind = OptimizerKind::Sgd;
  plain.lr = optimizer.lr;
  plain.groups = optimizer.groups;
  plain.clip_norm = optimizer.clip_norm;
  plain.momentum = plain.weight_decay = 0;
  return plain;
}

}  // namespace braid
