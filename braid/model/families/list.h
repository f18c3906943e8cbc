// The list of model families. A further family has its name here, its row in list.cpp and a file beside them.
#pragma once

#include "braid/base/word.h"

namespace braid {

// The first is the default of model.family.
enum class ModelFamily { Gpt2, Llama };
constexpr auto words(ModelFamily) { return std::to_array<std::string_view>({"gpt2", "llama"}); }

namespace model {

struct Family;
Family gpt2_family();
Family llama_family();

}  // namespace model
}  // namespace braid
