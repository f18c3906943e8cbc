// Known models by name, with the sizes that their authors published. Training settings (dropout, initial values) are
// not part of a preset.
#pragma once

#include <string>
#include <vector>

#include "braid/model/model_spec.h"

namespace braid::model {

struct Preset {
  std::string name;
  std::string source;                         // publication of the sizes
  ModelSpec model;                            // preset and config are empty; vocab is 0 if the tokenizer determines it
  std::vector<std::string> other_names = {};  // those that other programs use
};

const std::vector<Preset>& presets();

}  // namespace braid::model
