// Names that torchtitan, Megatron-LM, Hugging Face, DeepSpeed, nanoGPT and torchrun have for what braid has keys for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::spec {

// `name` is in lower case, with underscores for dashes and no dashes in front: "micro_batch_size". With a dot it is one
// section's key, else a key of any section.
struct PeerName {
  std::string_view name;
  std::string_view key;  // of braid, "train.microbatch"; with "=" behind it and a value where that is said too
};

// The value stays as it is: --micro-batch-size 4 is train.microbatch=4.
std::span<const PeerName> peer_names();
// The key takes its value in other units or words: --save-interval in epochs, --lr-warmup-fraction.
std::span<const PeerName> related_peer_names();

// Words that peers have for a value of a key: train.dtype's "bf16".
struct PeerWord {
  std::string_view key, word, meant;
};
std::span<const PeerWord> peer_words();

// Returns the option or command of `known` that a peer's `word` means, else the only one that begins with it, else the
// nearest; empty if there is none.
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

// "--Micro-Batch-Size" as the tables have it: "micro_batch_size".
std::string as_peers_write(std::string_view name);

// The word of `key` that a peer's `word` means; empty: none.
std::string_view word_of_peer(std::string_view key, std::string_view word);

}  // namespace braid::spec
