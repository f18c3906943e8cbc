// The list of model families. A further family has its name here, its row in list.cpp and a file beside them.
#pragma once

#include <optional>
#include <ostream>
#include <string_view>

#include "braid/base/word.h"

namespace braid {

// A number in model::families(). The first is the default of model.family. Numbers above the last are those of families
// that the program adds (model::add_family()).
enum class ModelFamily { Gpt2, Llama, Bert, Gemma2 };

// A family's name, as word.h has it for other enums. Here the list may grow.
std::string_view word(ModelFamily family);
template <>
std::optional<ModelFamily> value_of<ModelFamily>(std::string_view name);
std::ostream& operator<<(std::ostream& out, ModelFamily family);

namespace model {

struct Family;
Family gpt2_family();
Family llama_family();
Family bert_family();
Family gemma2_family();

}  // namespace model
}  // namespace braid
