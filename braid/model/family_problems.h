// The mistakes of a family that a program adds (families.h).
#pragma once

#include <string>
#include <vector>

#include "braid/model/families.h"

namespace braid::model {

// Returns one sentence for each mistake of the model's blocks: those of problems_of() (graph.h), ops that are in the
// wrong block, dims that blocks do not pass on, letters without an extent, parameters that embedding and head share
// except for their table, and another number of cuts, positions, feed-forward branch or objective than the family
// states. Empty if there is none. REQUIRES: the model's heads form groups, and divide its width or have one of their
// own.
std::vector<std::string> problems_of_family(const ModelSpec& spec, const Family& family);

// Returns one sentence for each op that several tensor ranks would compute wrongly: it meets two split dims, a split
// letter that is not the major one, or it needs a split letter whole (op_table.h).
std::vector<std::string> problems_on_tensor_ranks(const ModelSpec& spec, const Family& family);

// Returns one sentence for each opaque op that makes a value of each token and has no split letter. Under sequence
// parallelism tensor ranks split the tokens that it reads, and nothing says that it computes each token by itself.
std::vector<std::string> problems_on_split_tokens(const ModelSpec& spec, const Family& family);
// The same for context parallelism, where ranks split the tokens of all opaque ops.
std::vector<std::string> problems_on_parts_of_sequences(const ModelSpec& spec, const Family& family);

}  // namespace braid::model
