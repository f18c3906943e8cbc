// The text. Its keys are checked by a test, those behind "# " too.
#include "braid/spec/starter.h"

namespace braid::spec {

std::string starter_toml() {
  return R"(# A run of braid. Put text into the folder "text", then: braid train run.toml
# Every key may be given behind the file too: braid train run.toml train.steps=50
# All keys with their defaults: braid config

[data]
paths = ["text"]  # text files, or folders with them; of .jsonl each line is a document
# validation_fraction = 0.05  # held out for evaluation
# tokenizer = "tokenizer.json"  # from braid data train-bpe or Hugging Face; bytes without it

[model]
preset = "gpt2-tiny"  # 4 layers of width 128, for trials; others: gpt2-124m, llama-small, llama-1b
context = 128  # tokens per sequence; a key beside the preset wins over it
# layers = 4
# width = 128
# heads = 4

[train]
steps = 200
batch = 8  # sequences per optimizer step, over all ranks
microbatch = 4  # sequences per forward pass; a rank accumulates batch / (microbatch x mesh.data) of them
out = "runs/run"  # metrics and checkpoints; afterwards: braid report runs/run
eval_every = 100
# overwrite = true  # replace an earlier run in the same folder
# save_every = 100
# dtype = "bfloat16"  # with float32 masters
# device = "cuda"  # one rank
# sample_prompt = "Once"  # generate from it at the end

[optimizer]
lr = 1e-3
# warmup_steps = 20
# weight_decay = 0.1
# clip_norm = 1.0

[mesh]  # ranks along each axis; their product is started
data = 1  # replicas, which share the batch
pipe = 1  # pipeline stages
tensor = 1  # ranks that split each matrix

# [pipeline]
# schedule = "zb-h1"  # order of the passes; braid simulate draws each

# [sync]
# zero = 1  # shard optimizer states (1), gradients (2), parameters (3) across data ranks

# [memory]
# recompute = "selective"  # activation checkpointing
)";
}

}  // namespace braid::spec
