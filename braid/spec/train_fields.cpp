// The fields of [train].
#include "braid/spec/field_builders.h"
#include "braid/spec/fields.h"

namespace braid::spec {

std::vector<Field> train_fields() {
  using namespace field_builders;
  using T = TrainSpec;
  return {
      train<&T::steps>("train.steps", at_least(1), "Optimizer steps of the run."),
      train<&T::batch>("train.batch", IntRange{1, 1000000},
                       "Sequences per step over all ranks; a multiple of train.microbatch x mesh.data, or x the sum of "
                       "mesh.batch_shares."),
      train<&T::microbatch>("train.microbatch", IntRange{1, 1000000}, "Sequences per forward pass of one rank."),
      train<&T::seed>("train.seed", IntRange{0, kMaxToml},
                      "Makes initial weights, order of samples and dropout; equal on every mesh."),
      train<&T::objective>("train.objective", one_of<Objective>(),
                           "What the model predicts: \"causal\" each token from those before it, \"masked\" chosen "
                           "tokens from all others; \"auto\" is that of model.family, and no other is possible."),
      train<&T::reduction>("train.reduction", one_of<Reduction>(),
                           "\"fast\" promises equal results up to rounding, \"reproducible\" the same bits on every "
                           "data, pipe and tensor size."),
      train<&T::tensor_parts>("train.tensor_parts", IntRange{1, 1024},
                              "Parts in which reproducible mode forms the sums that tensor ranks divide; mesh.tensor "
                              "times a power of two, unless mesh.tensor is 1. The vocabulary is then padded to a "
                              "multiple of model.vocab_multiple x tensor_parts."),
      train<&T::dtype>("train.dtype", one_of<DType>(),
                       "Type of weights and activations; bfloat16 and float16 keep float32 master weights, gradients "
                       "and, unless optimizer.state_dtype says otherwise, moments."),
      train<&T::loss_scale>("train.loss_scale", RealRange{1, kLargestLossScale, Bound::Closed, Bound::Closed},
                            "First scale of the loss in float16, rounded to a power of two; it halves on overflow and "
                            "grows again."),
      train<&T::device>("train.device", one_of<DeviceKind>(), "Where a rank computes; \"cuda\" has one rank."),
      train<&T::cuda_graph>("train.cuda_graph", one_of<GraphUse>(),
                            "On cuda, \"auto\" records a microbatch as a graph and replays it, unless reduction is "
                            "reproducible, attention is by document or memory.recompute is on; \"off\" never does."),
      train<&T::peak_flops>("train.peak_flops", from(0),
                            "Floating-point operations per second of one rank that utilisation is measured against; 0 "
                            "measures a matrix product."),
      train<&T::threads>("train.threads", IntRange{0, 256},
                         "Threads per rank; 0 takes as many as have work in a microbatch's matrix products (a thread "
                         "for every 16 million operations of one of model.width x model.width), at least 1, at most "
                         "cores / ranks, and 1 in reproducible mode."),
      train<&T::eval_every>("train.eval_every", at_least(0), "Steps between evaluations; 0 evaluates only at the end."),
      train<&T::eval_sequences>("train.eval_sequences", at_least(1),
                                "Held-out sequences per evaluation: the same ones each time, whatever the seed, the "
                                "batch and the mesh. Where less is held out they come again."),
      train<&T::log_every>("train.log_every", at_least(1),
                           "Steps between metrics lines, and between printed lines where no terminal is."),
      train<&T::save_every>("train.save_every", at_least(0),
                            "Steps between checkpoints; 0 saves none by steps. The last step is always saved."),
      train<&T::save_minutes>("train.save_minutes", from(0),
                              "Minutes since the last checkpoint after which the next step is saved, beside those that "
                              "save_every names; 0 saves none by time."),
      train<&T::out>("train.out", NotEmpty{}, "Folder for metrics, checkpoints and the timeline."),
      train<&T::overwrite>("train.overwrite", Anything{},
                           "Whether a run that begins removes what an earlier run left in train.out, and nothing else; "
                           "if not, such a folder is refused. A run that resumes in its own folder removes nothing."),
      train<&T::resume>("train.resume", Anything{},
                        "What to continue from: a checkpoint, the folder of a run (its newest valid checkpoint), or "
                        "\"latest\" (of train.out); empty starts anew."),
      train<&T::init>(
          "train.init", Anything{},
          "Weights to begin with: a Hugging Face directory, a checkpoint or the folder of a run; empty draws "
          "them. Steps, optimizer and data begin anew; without model.preset and model.config the model is "
          "the directory's (docs/weights.md)."),
      train<&T::on_spike>(
          "train.on_spike", one_of<OnSpike>(),
          "What happens before an update whose loss or gradient norm is a spike: the run ends (stop), "
          "skips this update (skip, at most ten times in a row), or returns to its newest checkpoint and "
          "skips the samples since then (rollback, at most three times to one checkpoint)."),
      train<&T::spike_threshold>("train.spike_threshold", from(0),
                                 "Standard deviations above its running mean, over some 100 steps, from which on a "
                                 "step's loss, or the logarithm of its gradient norm, is a spike. 0: only what is not "
                                 "finite is."),
      train<&T::check_replicas>("train.check_replicas", at_least(0),
                                "Steps between comparisons of the weights and optimizer states of which several ranks "
                                "hold copies; a rank whose copies differ is named and ends the run. 0: never."),
      train<&T::check>("train.check", one_of<NormCheck>(),
                       "Steps whose gradient norm is compared with one that is formed tensor by tensor from what all "
                       "ranks hold; a difference that rounding does not explain ends the run before the update. "
                       "first-step: the first one after each start whose gradients are finite."),
      train<&T::allow_change>("train.allow_change", Anything{},
                              "Keys of the training, such as [\"optimizer.lr\"], that may have another value than in "
                              "the checkpoint that train.resume names; any other change of one is refused."),
      train<&T::sample_prompt>("train.sample_prompt", Anything{},
                               "Text to continue when training ends; empty generates nothing."),
      train<&T::sample_tokens>("train.sample_tokens", at_least(1), "Tokens to generate from train.sample_prompt."),
  };
}

}  // namespace braid::spec
