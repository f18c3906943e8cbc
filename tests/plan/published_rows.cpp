// The tables, typed.
#include "tests/plan/published_rows.h"

#include <algorithm>

#include "braid/base/text.h"
#include "braid/plan/predict_run.h"

namespace braid {
namespace {

RunSpec gpt(int layers, int heads, int width, int context) {
  RunSpec run;
  run.model.layers = layers;
  run.model.heads = heads;
  run.model.width = width;
  run.model.context = context;
  run.model.dropout = 0.1;
  return run;
}

struct Ptdp {
  double billions;
  int heads, width, layers, tensor, pipe, devices, batch;
  double tflops;
};

constexpr Ptdp kPtdp[] = {
    {1.7, 24, 2304, 24, 1, 1, 32, 512, 137},          {3.6, 32, 3072, 30, 2, 1, 64, 512, 138},
    {7.5, 32, 4096, 36, 4, 1, 128, 512, 142},         {18.4, 48, 6144, 40, 8, 1, 256, 1024, 135},
    {39.1, 64, 8192, 48, 8, 2, 512, 1536, 138},       {76.1, 80, 10240, 60, 8, 4, 1024, 1792, 140},
    {145.6, 96, 12288, 80, 8, 8, 1536, 2304, 148},    {310.1, 128, 16384, 96, 8, 16, 1920, 2160, 155},
    {529.6, 128, 20480, 105, 8, 35, 2520, 2520, 163}, {1008.0, 160, 25600, 128, 8, 64, 3072, 3072, 163},
};

// 96 B s l h^2 (1 + s/6h + V/16lh): forward twice, for recomputation, and backward.
double recomputed_flops(const RunSpec& run) {
  const double s = run.model.context, l = run.model.layers, h = run.model.width, vocab = run.model.vocab;
  return 96 * run.train.batch * s * l * h * h * (1 + s / (6 * h) + vocab / (16 * l * h));
}

struct Korthikanti {
  const char* name;
  int heads, width, layers, tensor, pipe, chunks, data, batch, microbatch;
  double full_recompute, present_work;  // seconds
};

constexpr Korthikanti kKorthikanti[] = {
    {"22B", 64, 6144, 48, 8, 1, 1, 1, 4, 4, 1.42, 1.10},
    {"175B", 96, 12288, 96, 8, 8, 3, 1, 64, 1, 18.13, 13.75},
    {"530B", 128, 20480, 105, 8, 35, 3, 1, 280, 1, 49.05, 37.83},
    {"1T", 160, 25600, 128, 8, 64, 1, 1, 512, 1, 94.42, 71.49},
    {"530B on 2240", 128, 20480, 105, 8, 35, 3, 8, 2240, 1, 0, 39.15},
};

struct ZeroBubbleModel {
  const char* name;
  int layers, heads, width, devices, microbatch, chunks;
};
struct ZeroBubble {
  ZeroBubbleModel model;
  const char* schedule;
  double memory_gb;
  int microbatches[3];
  double samples[3];  // a second and device
};

constexpr ZeroBubbleModel k1B5{"1.5B", 22, 24, 2304, 8, 6, 3};
constexpr ZeroBubbleModel k14B6{"14.6B", 46, 40, 5120, 16, 1, 3};
constexpr ZeroBubble kZeroBubble[] = {
    {k1B5, "zb-2p", 59, {24, 32, 64}, {14.5, 14.8, 14.9}},
    {k1B5, "zb-1p", 32, {24, 32, 64}, {12.9, 13.4, 14.2}},
    {k1B5, "1f1b", 30, {24, 32, 64}, {11.8, 12.5, 13.6}},
    {k1B5, "interleaved", 40, {24, 32, 64}, {13.1, 13.4, 13.9}},
    {k14B6, "zb-2p", 51, {48, 64, 128}, {1.81, 1.83, 1.85}},
    {k14B6, "zb-1p", 33, {48, 64, 128}, {1.61, 1.67, 1.76}},
    {k14B6, "1f1b", 32, {48, 64, 128}, {1.40, 1.49, 1.64}},
    {k14B6, "interleaved", 39, {48, 64, 128}, {1.54, 1.59, 1.66}},
};

// As many blocks as can be, evenly, on the stages between the first and the last, which have one fewer.
std::string one_fewer_at_the_ends(int layers, int stages) {
  const int each = (layers + 2) / stages;
  std::vector<std::string> blocks(stages, cat(each));
  blocks.front() = blocks.back() = cat(each - 1);
  return joined(blocks, ",");
}

// All stages alike, in halves of a block where whole ones cannot be.
std::string alike(int layers, int stages) {
  if (2 * layers % stages != 0) return "even";
  return joined(std::vector<std::string>(stages, exact(static_cast<double>(layers) / stages)), ",");
}

PublishedRow zero_bubble_row(const ZeroBubble& row, int i) {
  const ZeroBubbleModel& model = row.model;
  RunSpec run = gpt(model.layers, model.heads, model.width, 1024);
  run.model.vocab = 32000;
  run.model.vocab_multiple = 128;
  run.mesh.pipe = model.devices;
  run.pipeline.schedule = row.schedule;
  run.pipeline.chunks = run.pipeline.schedule == "interleaved" ? model.chunks : 0;
  run.pipeline.partition = one_fewer_at_the_ends(model.layers, model.devices * std::max(run.pipeline.chunks, 1));
  run.train.microbatch = model.microbatch;
  run.train.batch = model.microbatch * row.microbatches[i];
  run.train.dtype = DType::BFloat16;
  return {"Qi et al. 2023, table 4",
          cat(model.name, ", ", row.schedule, ", m = ", row.microbatches[i]),
          run,
          model.devices,
          run.train.batch / (row.samples[i] * model.devices),
          row.memory_gb,
          run.pipeline.schedule == "1f1b" && i == 1 + (model.devices == 8)};
}

RunSpec llama(int layers, int heads, int width, int ffn) {
  RunSpec run;
  run.model.family = ModelFamily::Llama;
  run.model.layers = layers;
  run.model.heads = heads;
  run.model.kv_heads = 8;
  run.model.width = width;
  run.model.ffn = ffn;
  run.model.context = 8192;
  run.model.vocab = 128256;
  run.model.output_weights = OutputWeights::Untied;
  run.train.microbatch = 1;
  run.train.dtype = DType::BFloat16;
  return run;
}

// 8,192 GPUs, tensor 8, pipe 16, data 64, 32 sequences of each replica; 430 TFLOP/s each. A block fewer in the first
// and the last stage, which are interleaved, one block each (section 3.3.2).
PublishedRow llama3_405b() {
  RunSpec run = llama(126, 128, 16384, 53248);
  run.mesh.tensor = 8;
  run.mesh.pipe = 16;
  run.mesh.data = 64;
  run.mesh.sequence_parallel = true;
  run.pipeline.schedule = "interleaved";
  run.pipeline.chunks = 8;
  run.pipeline.partition = one_fewer_at_the_ends(126, 128);
  run.sync.zero = 2;
  run.train.batch = 64 * 32;
  const double tokens = static_cast<double>(run.train.batch) * run.model.context;
  const double seconds =
      tokens * plan::model_flops_per_token(layout::account_of(run.model), plan::FormulaSet::Braid) / (430e12 * 8192);
  return {"Grattafiori et al. 2024, table 4",   "405B",    run, 8192, seconds, 0, false,
          plan::FormulaSet::TorchtitanCompiled, "dgx-h100"};
}

struct Torchtitan {
  const char* name;
  int devices;
  plan::FormulaSet formulas;
  double tokens_per_second, memory_gib;
};

// FSDP of 8B on 8 GPUs with 2 sequences each; of 70B on 256, 32 x tensor 8, 16 sequences of each replica.
constexpr Torchtitan kTorchtitan[] = {
    {"8B", 8, plan::FormulaSet::Torchtitan, 5762, 82.4},
    {"8B, compiled", 8, plan::FormulaSet::TorchtitanCompiled, 6667, 77.0},
    {"8B, compiled, measured with float8", 8, plan::FormulaSet::TorchtitanCompiled, 8532, 76.8},
    {"70B, compiled, measured with float8", 256, plan::FormulaSet::TorchtitanCompiled, 829, 71.9},
    {"70B, asynchronous tensor, measured with float8", 256, plan::FormulaSet::TorchtitanAsyncTensor, 876, 67.6},
};

PublishedRow torchtitan_row(const Torchtitan& row) {
  const bool large = row.devices == 256;
  RunSpec run = large ? llama(80, 64, 8192, 28672) : llama(32, 32, 4096, 14336);
  run.mesh.tensor = large ? 8 : 1;
  run.mesh.sequence_parallel = large;
  run.mesh.data = row.devices / run.mesh.tensor;
  run.sync.zero = 3;
  run.memory.recompute = large ? "full" : "selective";
  run.train.microbatch = large ? 16 : 2;
  run.train.batch = run.train.microbatch * run.mesh.data;
  const double tokens = static_cast<double>(run.train.batch) * run.model.context / row.devices;
  return {"torchtitan, December 2024",
          row.name,
          run,
          row.devices,
          tokens / row.tokens_per_second,
          row.memory_gib,
          row.tokens_per_second == 5762,
          row.formulas,
          "h100-96gb-500w"};
}

}  // namespace

std::vector<PublishedRow> ptdp_rows() {
  std::vector<PublishedRow> rows;
  for (const Ptdp& row : kPtdp) {
    RunSpec run = gpt(row.layers, row.heads, row.width, 2048);
    run.model.vocab = 51200;
    run.mesh.tensor = row.tensor;
    run.mesh.pipe = row.pipe;
    run.mesh.data = row.devices / (row.tensor * row.pipe);
    run.pipeline.schedule = row.pipe > 1 ? "interleaved" : "1f1b";
    run.pipeline.chunks = row.pipe > 1 ? 2 : 0;
    run.pipeline.partition = alike(row.layers, row.pipe * std::max(run.pipeline.chunks, 1));
    run.memory.recompute = "full";
    run.train.batch = row.batch;
    run.train.microbatch = 1;
    run.train.dtype = DType::Float16;
    rows.push_back({"Narayanan et al. 2021, table 1", cat(row.billions, "B"), run, row.devices,
                    recomputed_flops(run) / (row.tflops * 1e12 * row.devices), 0, row.billions == 39.1});
  }
  return rows;
}

std::vector<PublishedRow> korthikanti_rows() {
  std::vector<PublishedRow> rows;
  for (const Korthikanti& row : kKorthikanti) {
    RunSpec run = gpt(row.layers, row.heads, row.width, 2048);
    run.model.vocab = 51200;
    run.mesh.tensor = row.tensor;
    run.mesh.pipe = row.pipe;
    run.mesh.data = row.data;
    run.pipeline.schedule = row.chunks > 1 ? "interleaved" : "1f1b";
    run.pipeline.chunks = row.chunks > 1 ? row.chunks : 0;
    run.train.batch = row.batch;
    run.train.microbatch = row.microbatch;
    run.train.dtype = DType::Float16;
    const int devices = row.tensor * row.pipe * row.data;
    for (const bool recomputes : {true, false}) {
      if (recomputes && row.full_recompute == 0) continue;
      run.memory.recompute = recomputes ? "full" : "selective";
      run.mesh.sequence_parallel = !recomputes;
      rows.push_back({"Korthikanti et al. 2022, table 5",
                      cat(row.name, recomputes ? ", full recompute" : ", selective, sequence parallel"), run, devices,
                      recomputes ? row.full_recompute : row.present_work, 0,
                      !recomputes && std::string(row.name) == "530B"});
    }
  }
  return rows;
}

std::vector<PublishedRow> zero_bubble_rows() {
  std::vector<PublishedRow> rows;
  for (const ZeroBubble& row : kZeroBubble) {
    for (int i = 0; i < 3; ++i) rows.push_back(zero_bubble_row(row, i));
  }
  return rows;
}

std::vector<PublishedRow> h100_rows() {
  std::vector<PublishedRow> rows{llama3_405b()};
  for (const Torchtitan& row : kTorchtitan) rows.push_back(torchtitan_row(row));
  return rows;
}

}  // namespace braid
