// Products by LibTorch, and steps by the trainer.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <iostream>

#include "bench/support/commands.h"
#include "bench/support/training_steps.h"
#include "braid/base/clock.h"
#include "braid/base/host.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/layout/parameters.h"
#include "braid/model/model_flops.h"
#include "braid/nn/model.h"
#include "braid/report/metrics_file.h"
#include "braid/spec/parse.h"
#include "braid/train/compute_device.h"
#include "braid/train/run.h"
#include "braid/train/trainer.h"
#include "tools/check_cuda/commands.h"

namespace braid::cuda_check {
namespace {

constexpr int64_t kProductSize = 8192;
constexpr int kRounds = 7, kProductsPerRound = 5;

double product_flops(at::ScalarType dtype) {
  const auto options = at::TensorOptions(at::kCUDA);
  const at::Tensor a = at::randn({kProductSize, kProductSize}, options).to(dtype), b = a.t().contiguous();
  at::Tensor out = at::empty_like(a);
  std::vector<double> seconds;
  for (int round = 0; round <= kRounds; ++round) {
    const double begin = now_seconds();
    for (int i = 0; i < kProductsPerRound; ++i) at::mm_out(out, a, b);
    out.select(0, 0).select(0, 0).item<double>();  // waits for the device
    if (round > 0) seconds.push_back((now_seconds() - begin) / kProductsPerRound);
  }
  return 2 * std::pow(static_cast<double>(kProductSize), 3) / bench::median(seconds);
}

// Tokens as natural text has them: number k comes about as often as 1 / k, so that the most frequent ones are many.
data::Corpus text_like_corpus(const RunSpec& spec) {
  constexpr size_t kTokens = 1 << 22;
  std::vector<int> tokens(kTokens);
  const double width = std::log(static_cast<double>(spec.model.vocab));
  for (size_t i = 0; i < kTokens; ++i) {
    tokens[i] = std::min(spec.model.vocab - 1, static_cast<int>(std::exp(width * uniform(3, i))) - 1);
  }
  const auto source = std::make_shared<data::MemoryTokens>(spec.model.vocab);
  source->add_document(tokens);
  data::Corpus corpus;
  corpus.train.push_back({source});
  corpus.num_documents = 1;
  return corpus;
}

report::MetricsLine facts_of(const RunSpec& spec) {
  report::MetricsLine line;
  line.add("parameters", layout::count_params(spec.model));
  line.add("tokens_per_step", int64_t{spec.train.batch} * spec.model.context);
  return line.add("flops_per_token", model::model_flops_per_token(spec.model));
}

// A step is over when the update is, which the trainer does not wait for.
report::MetricsLine timed_step(train::Trainer& trainer) {
  const double begin = now_seconds();
  const train::StepReport report = trainer.step();
  trainer.model().params().flat_master().select(0, 0).item<double>();
  report::MetricsLine line;
  line.add("seconds", now_seconds() - begin).add("loss", report.loss);
  return line.add("peak_bytes", report.memory.at(0).peak_total_bytes);
}

}  // namespace

int products() {
  enter("cuda");
  const c10::AutoGradMode no_grad(false);
  report::MetricsLine line;
  line.add("size", kProductSize);
  line.add("bfloat16", product_flops(at::kBFloat16)).add("float16", product_flops(at::kHalf));
  line.add("float32", product_flops(at::kFloat));
  at::globalContext().setFloat32MatmulPrecision("high");
  line.add("tf32", product_flops(at::kFloat));
  std::cout << line.text() << std::endl;
  return 0;
}

int steps(const std::string& file, const std::vector<std::string>& overrides) {
  const RunSpec spec = spec::read_run(file, overrides, train::host_limits());
  train::open_device(spec);
  const data::Corpus corpus = text_like_corpus(spec);
  param::install_memory_accounting();
  bench::Commands commands(1);
  run_ranks(1, [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(num_cores());  // initial values are made on the host
    param::account_memory_to(0);
    train::enter_device(spec);
    train::Trainer trainer(spec, corpus, world);
    commands.serve(0, [&](const std::string& command) {
      const report::MetricsLine answer = command == "facts" ? facts_of(spec) : timed_step(trainer);
      std::cout << answer.text() << std::endl;
    });
    if (const std::string why = trainer.graph_failure(); !why.empty()) std::cerr << "no CUDA graphs: " << why << "\n";
  });
  return 0;
}

}  // namespace braid::cuda_check
