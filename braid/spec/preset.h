// Known models by name: sizes as their authors published them. Training settings (dropout, initial values) are not part
// of a preset.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

struct Preset {
  std::string name;
  std::string source;  // where the figures are from
  ModelSpec model;     // preset and config are empty; vocab 0 where the preset leaves it to the tokenizer
};

const std::vector<Preset>& presets();

// The model that `asked`.preset or `asked`.config describes, or the defaults when both are empty; preset and config are
// empty in it. Adds a problem when both are given, when the preset is unknown, and all that is wrong with the file.
ModelSpec described_model(const ModelSpec& asked, std::vector<Problem>& problems);

}  // namespace braid::spec
