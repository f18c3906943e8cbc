// The printed forms of the field list.
#include "braid/spec/describe.h"

#include <algorithm>

#include "braid/base/text.h"
#include "braid/model/preset.h"
#include "braid/model/shape.h"
#include "braid/spec/combine.h"
#include "braid/spec/fields.h"

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

namespace {

std::vector<Field> fields_of(const Section& section) {
  std::vector<Field> own;
  for (const auto& field : fields()) {
    if (section_of(field) == section.name) own.push_back(field);
  }
  return own;
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

// Returns text such as "integer, at least 1".
std::string type_and_rule(const Field& field) {
  const std::string rule = rule_text(field.rule);
  return rule.empty() ? type_text(field) : type_text(field) + ", " + rule;
}

std::string code(const std::string& text) { return "`" + text + "`"; }

std::string section_markdown(const Section& section) {
  std::string all = cat("\n## [", section.name, "]\n\n", section.meaning, "\n\n");
  all += "| key | default | value | meaning |\n|---|---|---|---|\n";
  for (const auto& field : fields_of(section)) {
    all += cat("| ", code(leaf_of(field)), " | ", code(value_text(field, RunSpec())), " | ", type_and_rule(field),
               " | ", field.meaning, " |\n");
  }
  return all;
}

std::string presets_markdown() {
  std::string all =
      "\n## Presets\n\n"
      "What `model.preset` may name. Dropout and initial values are the run's, not the preset's.\n\n"
      "| preset | family | layers | heads | key heads | width | ffn | context | vocabulary | head | figures from |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const model::Preset& preset : model::presets()) {
    const ModelSpec& model = preset.model;
    const std::string vocab = model.vocab > 0 ? cat(model.vocab) : "the tokenizer's";
    all += cat("| ", code(preset.name), " | ", model.family, " | ", model.layers, " | ", model.heads, " | ");
    all += cat(model::num_kv_heads(model), " | ", model.width, " | ", model::ffn_width(model), " | ", model.context,
               " | ");
    all += cat(vocab, " | ", model.output_weights, " | ", preset.source, " |\n");
  }
  return all;
}

std::string combinations_markdown() {
  std::string all =
      "\n## Features together\n\n"
      "What is refused together, and what means something else together. All other pairs combine freely: they train\n"
      "the same model. A program with torch modules of its own (`ModulePipeline`, `DataParallel`) has a verdict for\n"
      "each feature that it can ask for; its modules say themselves what the configuration says of braid's models.\n\n"
      "| features | verdict | why |\n|---|---|---|\n";
  for (const auto& pair : combinations()) {
    const std::string names = pair.a == pair.b ? text(pair.a) : text(pair.a) + " and " + text(pair.b);
    const char* verdict = pair.verdict == Verdict::ChangesSemantics ? "changes semantics" : "refused";
    all += cat("| ", names, " | ", verdict, " | ", pair.why, " |\n");
  }
  return all;
}

}  // namespace

std::string to_toml(const RunSpec& spec) {
  std::string all;
  for (const auto& section : sections()) {
    all += cat(all.empty() ? "" : "\n", "[", section.name, "]\n");
    for (const auto& field : fields_of(section)) all += cat(leaf_of(field), " = ", value_text(field, spec), "\n");
  }
  return all;
}

std::string config_text() {
  size_t width = 0;
  for (const auto& field : fields()) {
    width = std::max(width, cat(leaf_of(field), " = ", value_text(field, RunSpec())).size());
  }
  std::string all;
  for (const auto& section : sections()) {
    all += cat(all.empty() ? "" : "\n", "[", section.name, "]  ", section.meaning, "\n");
    for (const auto& field : fields_of(section)) {
      const std::string assignment = cat(leaf_of(field), " = ", value_text(field, RunSpec()));
      all += cat("  ", padded(assignment, width), "  ", field.meaning, " (", type_and_rule(field), ")\n");
    }
  }
  return all;
}

std::string config_markdown() {
  std::string all =
      "# Configuration\n\n"
      "Made by `braid config --markdown`; `braid config` prints the same in the terminal.\n\n"
      "A run is described by a TOML file. Every key has a default; only `data.paths` must be given. A word of the "
      "form\n"
      "`section.key=value` on the command line overrides the file, and the last one of a key wins. Strings need no\n"
      "quotes there: `train.reduction=reproducible`, `data.paths=[a.txt, b.txt]`.\n\n"
      "`model.preset` or `model.config` gives the model's figures; other keys of the section, in the file or on the\n"
      "command line, win over it. The configuration that a run writes names neither: it has every figure itself.\n\n"
      "Whatever is wrong is reported at once, each fault with the nearest valid value.\n";
  for (const auto& section : sections()) all += section_markdown(section);
  return all + presets_markdown() + combinations_markdown();
}

}  // namespace braid::spec
