// The list of fields: key, meaning, place and rule of every value a user can set. The structs hold the defaults.
#include "braid/model/families.h"
#include "braid/spec/field_builders.h"
#include "braid/spec/fields.h"
#include "braid/spec/partition.h"

namespace braid::spec {
namespace {

using namespace field_builders;
using M = ModelSpec;
using D = DataSpec;
using O = OptimizerSpec;

std::vector<Field> model_fields() {
  using Traits = model::FamilyTraits;
  const std::string grouped = only_of(&Traits::key_heads, {model::KeyHeads::Shared});
  const std::string free_heads = only_of(&Traits::heads, {model::HeadForm::Free});
  const std::string capped = only_of(&Traits::heads, {model::HeadForm::Capped});
  const std::string wide_heads = only_of(&Traits::heads, {model::HeadForm::Free, model::HeadForm::Capped});
  const std::string rotary = only_of(&Traits::positions, {model::PositionKind::Rotary});
  return {
      model<&M::preset>("model.preset", Anything{},
                        "A known model's sizes by name, such as \"gpt2-124m\"; other keys of the section override it."),
      model<&M::config>("model.config", Anything{},
                        "A Hugging Face config.json to take sizes from; other keys of the section override it."),
      model<&M::family>("model.family", OneOf{model::family_names()}, "Architecture of the model."),
      model<&M::layers>("model.layers", IntRange{1, 1 << 16}, "Number of transformer blocks."),
      model<&M::heads>("model.heads", at_least(1),
                       "Attention heads per block; divides model.width, unless model.head_width is given."),
      model<&M::kv_heads>(
          "model.kv_heads", at_least(0),
          "Key and value heads per block, each shared by a group of heads; 0 takes model.heads." + grouped),
      model<&M::width>("model.width", IntRange{1, 1 << 20}, "Features of the residual stream."),
      model<&M::head_width>("model.head_width", IntRange{0, 1 << 16},
                            "Features of one attention head; 0 takes model.width / model.heads." + wide_heads),
      model<&M::qkv_bias>("model.qkv_bias", Anything{},
                          "Whether queries, keys and values have biases, as in Qwen 2." + free_heads),
      model<&M::qk_norm>("model.qk_norm", Anything{},
                         "Whether queries and keys are normalised (RMSNorm) within each head before they are rotated, "
                         "as in Qwen 3." +
                             free_heads),
      model<&M::window>("model.window", at_least(0),
                        "Sliding window attention: the newest tokens that a token sees, itself among them, as in "
                        "Mistral; 0: all. In Gemma 2, of layers 0, 2, 4 .. alone." +
                            wide_heads),
      model<&M::attention_cap>("model.attention_cap", RealRange{0, 64, Bound::Closed, Bound::Closed},
                               "Attention scores x become cap tanh(x / cap), as in Gemma 2; 0: they stay." + capped),
      model<&M::logit_cap>("model.logit_cap", from(0),
                           "Logits x become cap tanh(x / cap), as in Gemma 2; 0: they stay." + capped),
      model<&M::query_scalar>(
          "model.query_scalar", from(0),
          "Attention scores are divided by its square root; 0: by that of the head's features." + capped),
      model<&M::ffn>(
          "model.ffn", at_least(0),
          "Features inside the feed-forward branch; 0 takes the family's width, which braid model prints. With "
          "experts: of each of them."),
      model<&M::experts>("model.experts", IntRange{0, 1 << 16},
                         "Feed-forward branches of a block, of which a router chooses model.experts_per_token for each "
                         "token; 0: one branch for all tokens. 0 for now: more are planned, not trained."),
      model<&M::experts_per_token>("model.experts_per_token", IntRange{1, 1 << 16},
                                   "Experts that each token goes to; at most model.experts."),
      model<&M::context>("model.context", at_least(1), "Tokens per sequence."),
      model<&M::vocab>("model.vocab", IntRange{0, 1 << 24}, "Tokens the model knows; 0 takes the tokenizer's number."),
      model<&M::vocab_multiple>("model.vocab_multiple", IntRange{1, 65536},
                                "The vocabulary is padded to a multiple of this times mesh.tensor."),
      model<&M::output_weights>("model.output_weights", one_of<OutputWeights>(),
                                "Whether the head shares the token embedding's weights."),
      model<&M::dropout>("model.dropout", RealRange{0, 1, Bound::Closed, Bound::Open},
                         "Share of activations dropped, on the embeddings and on both residual branches."),
      model<&M::init_std>("model.init_std", more_than(0),
                          "Standard deviation of initial weights; residual projections use it / sqrt(2 model.layers)."),
      model<&M::norm_eps>("model.norm_eps", from(1e-12), "Added to the variance or mean square in norms."),
      model<&M::rope_base>("model.rope_base", more_than(1), "Base of the rotary positions' wavelengths." + rotary),
      model<&M::rope_scaling>("model.rope_scaling", one_of<RopeScaling>(),
                              "How rotary frequencies are stretched to longer contexts." + rotary),
      model<&M::rope_factor>("model.rope_factor", from(1),
                             "Scaled contexts are longer by this factor: llama3 and yarn divide low frequencies by it, "
                             "linear all of them, and dynamic raises the base for sequences above model.rope_context."),
      model<&M::rope_low_frequency>("model.rope_low_frequency", more_than(0),
                                    "llama3 scaling: wavelengths above model.rope_context / this are divided in full."),
      model<&M::rope_high_frequency>("model.rope_high_frequency", more_than(0),
                                     "llama3 scaling: wavelengths below model.rope_context / this stay as they are."),
      model<&M::rope_context>("model.rope_context", at_least(1),
                              "All scalings but linear: tokens per sequence of the model's first training."),
      model<&M::rope_fast_turns>("model.rope_fast_turns", more_than(0),
                                 "yarn scaling: frequencies with more turns within model.rope_context stay as they "
                                 "are (beta_fast)."),
      model<&M::rope_slow_turns>("model.rope_slow_turns", more_than(0),
                                 "yarn scaling: frequencies with fewer turns are divided in full (beta_slow)."),
      model<&M::rope_magnitude>(
          "model.rope_magnitude", from(0),
          "yarn scaling: factor of rotated queries and keys; 0: 1 + log(model.rope_factor) / 10."),
  };
}

std::vector<Field> data_fields() {
  return {
      data<&D::paths>(
          "data.paths", Anything{},
          "Text files, or folders searched recursively, other files than text passed over; at least one. Of a "
          ".jsonl or .ndjson file, or a .json of such lines, every line is a document, its string \"text\"."),
      data<&D::include>("data.include", Anything{},
                        "File name patterns inside folders, such as \"*.py\"; empty takes every file."),
      data<&D::tokenizer>(
          "data.tokenizer", NotEmpty{},
          "How text becomes tokens: \"bytes\", a tokenizer.json, or a folder with it or with vocab.json "
          "and merges.txt."),
      data<&D::weights>("data.weights", Anything{},
                        "Share of the samples that comes from each of data.paths, prepared data only; empty shares by "
                        "size."),
      data<&D::attention>("data.attention", one_of<AttentionMask>(),
                          "\"document\" hides the other documents of a sequence from a token."),
      data<&D::sequences>(
          "data.sequences", one_of<SequenceCut>(),
          "How sequences of a masked family are cut: \"packed\" fills each with text, across documents; "
          "\"documents\" gives each tokens of one document, and padding, to which no token attends."),
      data<&D::mask_fraction>("data.mask_fraction", RealRange{0, 0.5, Bound::Open, Bound::Closed},
                              "Fraction of each sequence's text that a masked family predicts, at least one token."),
      data<&D::validation_fraction>("data.validation_fraction", RealRange{0, 0.9},
                                    "Share of the documents' bytes held out for evaluation."),
  };
}

std::vector<Field> pipeline_fields() {
  return {
      pipeline<&PipelineSpec::schedule>("pipeline.schedule", OneOf{schedule_names(), "file:"},
                                        "Order of forward and backward passes; file:PATH reads a table of actions."),
      pipeline<&PipelineSpec::chunks>("pipeline.chunks", IntRange{0, 64},
                                      "Stages per pipeline rank, for the schedules that leave it open (interleaved, "
                                      "looped-bfs, interleaved-zb); 0 is 2."),
      pipeline<&PipelineSpec::group>(
          "pipeline.group", at_least(0),
          "Microbatches that pass a chunk before the next chunk's turn (interleaved), or that one update takes "
          "(pipedream-2bw); 0 leaves it to the schedule."),
      pipeline<&PipelineSpec::weights>("pipeline.weights", one_of<StageWeights>(),
                                       "Which version of its weights a stage uses for a microbatch under an "
                                       "asynchronous schedule: its newest at the "
                                       "forward pass (own), or the one that the first stage used (vertical)."),
      pipeline<&PipelineSpec::partition>(
          "pipeline.partition", WordOrNumbers{{"even", "measured"}},
          "Transformer blocks of each stage: the same number, as near as can be (even); so many that the slowest rank "
          "is as fast as can be, by times measured at the start (measured); or one number per stage, model.layers in "
          "all, halves allowed. The embedding is in the first stage and the head in the last, on top."),
      pipeline<&PipelineSpec::speeds>(
          "pipeline.speeds", Anything{},
          "Relative speed of each pipeline rank, for a measured partition; empty: all are equally fast."),
  };
}

std::vector<Field> memory_fields() {
  return {
      memory<&MemorySpec::recompute>(
          "memory.recompute", Anything{},
          "What backward computes again in place of keeping it: \"none\"; \"selective\", the attention core and "
          "outputs "
          "of norms and activations; \"full\", all but the inputs of blocks; \"every:K\", all but every K-th of these; "
          "\"blocks:0-3+7\", all but those of the listed blocks. One for all stages, or one per stage (\"full,none\"). "
          "\"auto\": docs/memory.md."),
      memory<&MemorySpec::limit_gb>("memory.limit_gb", from(0),
                                    "What a rank may hold, in GiB (2^30 bytes): docs/memory.md; 0: no limit."),
      memory<&MemorySpec::optimizer>(
          "memory.optimizer", one_of<Tier>(),
          "Where the optimizer's states, float32 masters among them, are between updates: in the device's memory "
          "(resident), in its host's (host, only planned), or on disk; \"auto\" is as memory.limit_gb requires."),
      memory<&MemorySpec::gradients>("memory.gradients", one_of<Tier>(),
                                     "Where gradients are while no block adds to them; see memory.optimizer."),
      memory<&MemorySpec::parameters>("memory.parameters", one_of<Tier>(),
                                      "Where weights are while their block does not run; see memory.optimizer."),
      memory<&MemorySpec::activations>("memory.activations", one_of<Tier>(),
                                       "Where activations are until backward; see memory.optimizer."),
      memory<&MemorySpec::activation_blocks>("memory.activation_blocks", Anything{},
                                             "The first blocks of each stage for which memory.activations holds: "
                                             "\"all\", a number, or one per stage (\"4,0\")."),
      memory<&MemorySpec::paths>("memory.paths", Anything{},
                                 "Folders for what is on disk, in stripes of 4 MiB; empty is train.out."),
      memory<&MemorySpec::chunk_mb>("memory.chunk_mb", more_than(0),
                                    "What an update moves of each state at a time, in MiB (2^20 bytes)."),
  };
}

std::vector<Field> optimizer_fields() {
  const RealRange beta{0, 1, Bound::Closed, Bound::Open};
  return {
      optimizer<&O::kind>("optimizer.kind", one_of<OptimizerKind>(),
                          "What updates the parameters: docs/optimizers.md."),
      optimizer<&O::lr>("optimizer.lr", from(0), "Highest learning rate, reached after the warm-up."),
      optimizer<&O::schedule>("optimizer.schedule", one_of<RateSchedule>(),
                              "Shape of the learning rate after the warm-up; \"wsd\" stays and falls at the end, "
                              "\"inverse-sqrt\" falls with the root of the steps and has no end."),
      optimizer<&O::warmup_steps>("optimizer.warmup_steps", at_least(0),
                                  "Steps of linear warm-up; at most optimizer.decay_steps."),
      optimizer<&O::decay_steps>("optimizer.decay_steps", at_least(0),
                                 "Steps from the run's first to the end of the decay, warm-up included; then the rate "
                                 "stays. 0 takes train.steps, or what the checkpoint that train.resume names had."),
      optimizer<&O::cooldown_steps>("optimizer.cooldown_steps", at_least(0),
                                    "wsd: steps of the decay, the last ones before its end (optimizer.decay_steps); 0 "
                                    "takes a tenth of all up to there."),
      optimizer<&O::final_lr_fraction>("optimizer.final_lr_fraction", RealRange{0, 1},
                                       "Learning rate of the decay's last step and after it, as a share of "
                                       "optimizer.lr."),
      optimizer<&O::momentum>("optimizer.momentum", beta,
                              "Decay of the momentum of sgd and muon per step; 0 with sgd is plain gradient descent."),
      optimizer<&O::beta1>("optimizer.beta1", beta,
                           "Decay of AdamW's first moment per step; with lion, of the direction."),
      optimizer<&O::beta2>("optimizer.beta2", beta,
                           "Decay of AdamW's second moment per step; with lion, of the momentum."),
      optimizer<&O::eps>("optimizer.eps", from(1e-30), "Added to the root of the second moment, or of the squares."),
      optimizer<&O::weight_decay>("optimizer.weight_decay", from(0),
                                  "Weight decay, coupled with sgd and adagrad, else decoupled; none on norms and "
                                  "biases."),
      optimizer<&O::clip_norm>("optimizer.clip_norm", from(0), "Largest global norm of the gradient; 0 does not clip."),
      optimizer<&O::groups>("optimizer.groups", Anything{},
                            "Parameters with rates of their own, at most 15 groups: match, a pattern of names such as "
                            "\"*.bias\"; lr_scale, times the learning rate; weight_decay; or frozen = true, which does "
                            "not train them. The first that matches counts."),
      optimizer<&O::state_dtype>("optimizer.state_dtype", one_of<StateType>(),
                                 "Type in which moments are stored: \"float32\" (float64 with train.dtype = "
                                 "\"float64\"), \"bfloat16\", rounded stochastically, or \"int8\", codes by blocks."),
  };
}

std::vector<Field> checkpoint_fields() {
  using C = CheckpointSpec;
  return {
      checkpoint<&C::keep>("checkpoint.keep", at_least(0),
                           "The newest checkpoints that stay; older ones are removed once a new one is whole. 0 keeps "
                           "all."),
      checkpoint<&C::keep_best>("checkpoint.keep_best", at_least(0),
                                "Checkpoints that stay beside those, of all whose step was evaluated the ones with the "
                                "lowest validation loss."),
      checkpoint<&C::async>("checkpoint.async", Anything{},
                            "Whether a step waits only for a copy in memory of what each rank saves, which is written "
                            "while training continues; if not, it waits until the checkpoint is there."),
      checkpoint<&C::host_gib>("checkpoint.host_gib", from(0),
                               "What that copy may take of each rank's host memory, in GiB (2^30 bytes); 0: what it "
                               "needs."),
  };
}

std::vector<Field> run_fields() {
  return {
      run<&LaunchSpec::ranks>(
          "run.ranks", one_of<RanksAs>(),
          "What ranks are: \"threads\" of one process, or \"processes\", at most 64 of a host, forked "
          "before anything is computed; with the same bits. On several hosts: processes."),
      run<&LaunchSpec::engine>(
          "run.engine", one_of<CommEngine>(),
          "The library over which ranks exchange tensors: \"threads\" needs run.ranks "
          "\"threads\"; \"shm\" (shared memory "
          "of one host), \"tcp\", \"gloo\" and \"mpi\" (under mpirun) need processes. \"auto\" is threads "
          "or shm on one host, and tcp on several."),
      run<&LaunchSpec::max_restarts>("run.max_restarts", at_least(0),
                                     "How often a run whose ranks are processes restarts from its newest whole "
                                     "checkpoint after a rank was killed or hangs."),
      run<&LaunchSpec::progress_seconds>("run.progress_seconds", from(0),
                                         "A rank process that shows no sign of progress for so long, or for ten times "
                                         "the slowest step where that is longer, hangs and is killed; ten times as "
                                         "long where it computes, or reads and writes files. 0: never."),
      run<&LaunchSpec::placement>(
          "run.placement", NotEmpty{},
          "Which hosts have which ranks, where there are several: \"blocks\" gives each as many "
          "neighbouring ranks as it starts, so that tensor ranks share a host and data ranks are "
          "across; or the host of each rank, as in \"0,1,0,1\"."),
      run<&LaunchSpec::heartbeat_seconds>("run.heartbeat_seconds", from(0.1),
                                          "A host that is silent for so long has failed."),
  };
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> kFields = [] {
    std::vector<Field> all;
    for (auto part : {model_fields(), data_fields(), mesh_fields(), pipeline_fields(), sync_fields(), memory_fields(),
                      optimizer_fields(), train_fields(), checkpoint_fields(), run_fields()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return kFields;
}

const std::vector<Section>& sections() {
  static const std::vector<Section> kSections = {
      {"model", "The model; nothing here depends on the mesh."},
      {"data", "What is learned from."},
      {"mesh", "Ranks along each axis; the run starts their product."},
      {"pipeline", "How the blocks are cut into stages and in which order a stage works."},
      {"sync", "How replicas exchange gradients."},
      {"memory", "What a rank may hold, and what it computes again in place of holding it."},
      {"optimizer", "What updates the parameters, and its learning rate."},
      {"train", "The run: length, batch, numbers, outputs."},
      {"checkpoint", "How checkpoints are written, and which of them stay."},
      {"run", "How the ranks start."},
  };
  return kSections;
}

}  // namespace braid::spec
