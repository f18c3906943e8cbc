// The list.
#include "braid/cli/command_table.h"

namespace braid::cli {

const Command& braid_commands() {
  static const Command kBraid{
      "braid",
      "trains language models on all the devices its user has",
      nullptr,
      {
#ifdef BRAID_TORCH
          {"train", "train a language model as a configuration file says", train_command},
          {"sample", "generate text from a checkpoint", sample_command},
          {"evaluate", "measure a checkpoint's loss on text", evaluate_command},
          {"ckpt",
           "look into checkpoints, compare and rewrite them, take weights from and to elsewhere",
           nullptr,
           {
               {"inspect", "print what a checkpoint holds: tensors, files, tokenizer, data", ckpt_inspect_command},
               {"verify", "compare every byte of a checkpoint with its manifest", ckpt_verify_command},
               {"diff", "print what two checkpoints differ in", ckpt_diff_command},
               {"reshard", "write a checkpoint anew in other files, such as one of whole tensors",
                ckpt_reshard_command},
               {"from-hf", "make a checkpoint of a Hugging Face directory's weights", ckpt_from_hf_command},
               {"to-hf", "write a checkpoint's weights as a Hugging Face directory", ckpt_to_hf_command},
           }},
          {"bench",
           "time training on this machine: how it scales with ranks",
           nullptr,
           {{"scaling", "steps at several counts of data ranks: table and plot", scaling_command}}},
          {"doctor", "measure what this host or a job has: limits, links between ranks, disk", doctor_command},
#endif
          {"data",
           "prepare text for training: learn a vocabulary, make token files",
           nullptr,
           {{"prepare", "turn text files into token files for training", prepare_command},
            {"inspect", "print what a folder of prepared data holds, every byte verified", inspect_command},
            {"train-bpe", "learn a byte-level BPE vocabulary from text", train_bpe_command}}},
          {"token", "make the secret of a job on several hosts", token_command},
          {"plan", "foresee a run on a cluster, and find its fastest layout", plan_command},
          {"simulate", "draw a pipeline schedule on a virtual clock", simulate_command},
          {"report", "write a page about a run: curves, timeline, memory, configuration", report_command},
          {"config", "print every configuration key, its default and its meaning", config_command},
          {"completion", "print what makes a shell complete these words", completion_command},
          {"man", "print the manual page", man_command},
      }};
  return kBraid;
}

}  // namespace braid::cli
