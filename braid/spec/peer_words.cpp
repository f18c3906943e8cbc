// The tables of other programs' values, options and commands.
#include <algorithm>
#include <iterator>

#include "braid/base/text.h"
#include "braid/model/families.h"
#include "braid/spec/peer_names.h"

namespace braid::spec {
namespace {

constexpr size_t kFewestLetters = 4;  // least letters of a prefix that stands for the whole word

constexpr PeerWord kPeerWords[] = {
    {"train.dtype", "bf16", "bfloat16"},
    {"train.dtype", "torch.bfloat16", "bfloat16"},
    {"train.dtype", "fp16", "float16"},
    {"train.dtype", "half", "float16"},
    {"train.dtype", "torch.float16", "float16"},
    {"train.dtype", "fp32", "float32"},
    {"train.dtype", "float", "float32"},
    {"train.dtype", "tf32", "float32"},
    {"train.dtype", "torch.float32", "float32"},
    {"train.dtype", "fp64", "float64"},
    {"train.dtype", "double", "float64"},
    {"train.device", "gpu", "cuda"},
    {"train.device", "cuda:0", "cuda"},
    {"optimizer.state_dtype", "8bit", "int8"},
    {"optimizer.state_dtype", "bf16", "bfloat16"},
    {"optimizer.state_dtype", "fp32", "float32"},
    {"optimizer.kind", "adam", "adamw"},
    {"optimizer.kind", "adamw_torch", "adamw"},
    {"optimizer.kind", "adamw_torch_fused", "adamw"},
    {"optimizer.schedule", "constant_with_warmup", "constant"},
    {"optimizer.schedule", "warmup_stable_decay", "wsd"},
    {"pipeline.schedule", "interleaved1f1b", "interleaved"},
    {"pipeline.schedule", "loopedbfs", "looped-bfs"},
    {"pipeline.schedule", "interleavedzerobubble", "interleaved-zb"},
    {"pipeline.schedule", "zbvzerobubble", "zb-v"},
    {"pipeline.schedule", "zero-bubble", "zb-h1"},
    {"optimizer.kind", "sgd_momentum", "sgd"},
    {"optimizer.schedule", "cosine_with_warmup", "cosine"},
    {"optimizer.schedule", "warmup-stable-decay", "wsd"},
    {"memory.optimizer", "cpu", "host"},
    {"memory.optimizer", "none", "resident"},
    {"memory.optimizer", "nvme", "disk"},
    {"train.reduction", "deterministic", "reproducible"},
    {"sync.replication", "ddp", "all-reduce"},
    {"sync.compression", "bf16", "bfloat16"},
    {"sync.compression", "fp16", "float16"},
};

// An option such as "--node" or a command of braid, by another program's name for it without leading dashes.
struct PeerOption {
  std::string_view name, option;
};

constexpr PeerOption kPeerOptions[] = {
    {"nnodes", "--nodes"},
    {"num_nodes", "--nodes"},
    {"node_rank", "--node"},
    {"master_addr", "--root"},
    {"rdzv_endpoint", "--root"},
    {"max_new_tokens", "--tokens"},
    {"max_tokens", "--tokens"},
    {"max_length", "--tokens"},
    {"do_sample", "--temperature"},
    {"batch_size", "--batch"},
    {"num_return_sequences", "--num-samples"},
    {"generate", "sample"},
    {"inference", "sample"},
    {"resume", "train"},
    {"finetune", "train"},
    {"pretrain", "train"},
    {"tokenize", "prepare"},
    {"preprocess", "prepare"},
};

}  // namespace

std::span<const PeerWord> peer_words() { return kPeerWords; }

std::string_view word_of_peer(std::string_view key, std::string_view word) {
  const std::string lower = lower_case(word);
  const auto found =
      std::ranges::find_if(kPeerWords, [&](const PeerWord& row) { return row.key == key && row.word == lower; });
  if (key == "model.family") return model::family_meant(lower);
  if (key == "model.preset") return model::preset_meant(lower);
  return found == std::end(kPeerWords) ? std::string_view() : found->meant;
}

std::string nearest_word(const std::string& word, const std::vector<std::string>& known) {
  const auto is_meant = [&](const PeerOption& row) {
    return row.name == as_peers_write(word) && std::ranges::find(known, row.option) != known.end();
  };
  const auto row = std::ranges::find_if(kPeerOptions, is_meant);
  if (row != std::end(kPeerOptions)) return std::string(row->option);
  std::vector<std::string> begun;
  std::ranges::copy_if(known, std::back_inserter(begun), [&](const auto& one) { return one.starts_with(word); });
  return begun.size() == 1 && word.size() >= kFewestLetters ? begun[0] : nearest(word, known);
}

}  // namespace braid::spec
