// The letters of dims that axes of the mesh split.
#pragma once

#include <string_view>

namespace braid::model {

// Heads of keys and values with their queries, features of the feed-forward branch, and the vocabulary. Source: Shoeybi
// et al., "Megatron-LM" (2019), section 3.
inline constexpr std::string_view kTensorLetters = "kfv";

}  // namespace braid::model
