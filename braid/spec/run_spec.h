// What a run is: plain structs with defaults, one per section of the TOML file.
// It knows nothing of torch, of how values are parsed (fields.h) or of what is legal together (problems.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

struct ModelSpec {
  std::string preset;           // a known model's sizes (preset.h); other keys of the section override it
  std::string config;           // a Hugging Face config.json to take sizes from; other keys of the section override it
  std::string family = "gpt2";  // gpt2 or llama
  int layers = 6;               // transformer blocks
  int heads = 6;                // attention heads per block
  int kv_heads = 0;             // key and value heads per block, shared by groups of heads; 0: as many as heads
  int width = 384;              // features of the residual stream
  int ffn = 0;                  // features inside the feed-forward branch; 0: ffn_width() chooses
  int context = 256;            // tokens per sequence
  int vocab = 0;                // 0: the tokenizer's
  int vocab_multiple = 64;      // vocabulary is padded to a multiple of this times mesh.tensor
  std::string output_weights = "tied";  // tied: the head shares the token embedding; untied
  double dropout = 0;                   // on embeddings and on both residual branches
  double init_std = 0.02;               // residual projections use init_std / sqrt(2 layers)
  double norm_eps = 1e-5;               // added to the variance (or mean square) in norms
  double rope_base = 10000;             // of rotary positions (llama)
  std::string rope_scaling = "none";    // none or llama3
  double rope_factor = 8;               // llama3: low frequencies are divided by this
  double rope_low_frequency = 1;        // llama3: wavelengths above rope_context / this are divided in full
  double rope_high_frequency = 4;       // llama3: wavelengths below rope_context / this stay
  int rope_context = 8192;              // llama3: context of the first training

  bool operator==(const ModelSpec&) const = default;
};

struct DataSpec {
  std::vector<std::string> paths;         // files, or folders searched recursively
  std::vector<std::string> include = {};  // file name patterns inside folders, "*.py"; empty: all
  std::string tokenizer = "bytes";    // bytes, a tokenizer.json, or a folder with it or with vocab.json + merges.txt
  std::vector<double> weights = {};   // share of samples from each path; empty: by size. Prepared data only
  std::string attention = "causal";   // causal, or document: tokens do not see other documents of their sequence
  double validation_fraction = 0.05;  // share of the documents' bytes held out

  bool operator==(const DataSpec&) const = default;
};

struct MeshSpec {
  int pipe = 1;
  int data = 1;
  int context = 1;
  int expert = 1;
  int tensor = 1;

  bool operator==(const MeshSpec&) const = default;
};

struct PipelineSpec {
  std::string schedule = "1f1b";
  std::vector<int> layers;  // transformer blocks of each stage; empty: as even as possible

  bool operator==(const PipelineSpec&) const = default;
};

struct SyncSpec {
  double bucket_mb = 25;       // gradient bucket, in 2^20 bytes
  double first_bucket_mb = 1;  // the bucket that is ready first in backward

  bool operator==(const SyncSpec&) const = default;
};

struct OptimizerSpec {
  double lr = 1e-3;
  std::string schedule = "cosine";  // cosine, linear or constant, after the warm-up
  int warmup_steps = 0;
  double final_lr_fraction = 0.1;  // of lr, at the last step
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;  // decoupled; none on norms and biases
  double clip_norm = 1.0;     // global gradient norm; 0: no clipping

  bool operator==(const OptimizerSpec&) const = default;
};

struct TrainSpec {
  int steps = 100;
  int batch = 8;       // sequences per step, over all ranks
  int microbatch = 4;  // sequences per forward pass of one rank
  uint64_t seed = 1;
  std::string reduction = "fast";   // fast or reproducible
  std::string dtype = "float32";    // float32, float64, bfloat16 or float16; the last two keep float32 master weights
  double loss_scale = 65536;        // float16: the first scale of the loss; it adapts
  std::string device = "cpu";       // cpu or cuda
  std::string cuda_graph = "auto";  // auto: microbatches are recorded and replayed on cuda where shapes are fixed; off
  double peak_flops = 0;         // of one rank, that utilisation is measured against; 0: measured with a matrix product
  int threads = 0;               // per rank; 0: cores / ranks, at least 1; 1 in reproducible mode
  int eval_every = 0;            // steps between evaluations; 0: only at the end
  int eval_batches = 8;          // batches of train.batch sequences per evaluation
  int log_every = 1;             // steps between metrics lines
  int save_every = 0;            // steps between checkpoints; 0: only at the end
  std::string out = "runs/run";  // folder for metrics, checkpoints, timeline
  std::string resume;            // checkpoint to continue from
  std::string sample_prompt;     // generate from this at the end; empty: do not
  int sample_tokens = 200;

  bool operator==(const TrainSpec&) const = default;
};

struct RunSpec {
  ModelSpec model;
  DataSpec data;
  MeshSpec mesh;
  PipelineSpec pipeline;
  SyncSpec sync;
  OptimizerSpec optimizer;
  TrainSpec train;

  bool operator==(const RunSpec&) const = default;
};

}  // namespace braid
