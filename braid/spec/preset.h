// Known models by name, with the sizes that their authors published. Training settings (dropout, initial values) are
// not part of a preset.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

struct Preset {
  std::string name;
  std::string source;  // publication of the sizes
  ModelSpec model;     // preset and config are empty; vocab is 0 if the tokenizer determines it
};

const std::vector<Preset>& presets();

// Returns the model that `asked`.preset or `asked`.config describes, or the defaults if both are empty. The result's
// preset and config are empty. Adds a problem if both are given or the preset is unknown, and every problem of the
// config file.
ModelSpec described_model(const ModelSpec& asked, std::vector<Problem>& problems);

}  // namespace braid::spec
