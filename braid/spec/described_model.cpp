// The choice between a preset and a config.json.
#include "braid/spec/described_model.h"

#include <string>

#include "braid/base/text.h"
#include "braid/model/hf_config.h"
#include "braid/model/preset.h"
#include "braid/spec/peer_names.h"

namespace braid::spec {
namespace {

ModelSpec named_model(const std::string& name, std::vector<Problem>& problems) {
  std::vector<std::string> names, quoted;
  for (const auto& preset : model::presets()) {
    if (preset.name == name) return preset.model;
    names.push_back(preset.name);
    quoted.push_back(quoted_text(preset.name));
  }
  const std::string_view known = word_of_peer("model.preset", name);
  const std::string meant = known.empty() ? nearest(name, names) : std::string(known);
  problems.push_back({"model.preset", quoted_text(name), cat("must be empty or one of ", joined(quoted)),
                      meant.empty() ? "" : quoted_text(meant)});
  return {};
}

}  // namespace

ModelSpec described_model(const ModelSpec& asked, std::vector<Problem>& problems) {
  if (!asked.preset.empty() && !asked.config.empty()) {
    problems.push_back({"model.config", quoted_text(asked.config), "must be empty when model.preset is given", "\"\""});
  }
  if (!asked.preset.empty()) return named_model(asked.preset, problems);
  if (!asked.config.empty()) return model::read_hf_config(asked.config, problems);
  return {};
}

}  // namespace braid::spec
