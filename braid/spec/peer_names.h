// Names that torchtitan, Megatron-LM, Hugging Face, DeepSpeed, nanoGPT and torchrun ("peers") use for braid's keys.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::spec {

// A peer's name and braid's key. `name` is in lower case, without leading dashes, and has underscores for dashes:
// "micro_batch_size". A name with a dot is a key of one section; others may be in any section.
struct PeerName {
  std::string_view name;
  std::string_view key;  // "train.microbatch", followed by "=" and a value if the name implies one
};

// Returns the names whose value is unchanged: --micro-batch-size 4 is train.microbatch=4.
std::span<const PeerName> peer_names();
// Returns the names whose value has other units or words than the key's: --save-interval in epochs,
// --lr-warmup-fraction.
std::span<const PeerName> related_peer_names();

// A peer's word for a value of a key: "bf16" for "bfloat16" of train.dtype.
struct PeerWord {
  std::string_view key, word, meant;
};
std::span<const PeerWord> peer_words();

// Returns the option or command of `known` that a peer's `word` means, else the only one that begins with `word`, else
// the one with the nearest spelling. Returns "" if there is none.
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

// Returns `name` in the form of the tables: "--Micro-Batch-Size" becomes "micro_batch_size".
std::string as_peers_write(std::string_view name);

// Returns the value of `key` that a peer's `word` means; empty if there is none.
std::string_view word_of_peer(std::string_view key, std::string_view word);

}  // namespace braid::spec
