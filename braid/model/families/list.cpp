// The rows of the list of families.
#include "braid/model/families/list.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/model/families.h"

namespace braid {
namespace model {
namespace {

constexpr ModelFamily kLastOfBraid = ModelFamily::Gemma2;  // the last that no program has added

std::vector<Family> families_of_braid() {
  std::vector<Family> families{gpt2_family(), llama_family(), bert_family(), gemma2_family()};
  check(families.size() == static_cast<size_t>(kLastOfBraid) + 1, "each family has a number and a row");
  return families;
}

// The one list of the process, which add_family() extends before anything reads it.
std::vector<Family>& list() {
  static std::vector<Family> families = families_of_braid();
  return families;
}

}  // namespace

std::span<const Family> families() { return list(); }

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& family : list()) names.push_back(family.name);
  return names;
}

ModelFamily add_family(Family family) {
  check(std::ranges::count(family_names(), family.name) == 0, cat("a family has a name of its own, not ", family.name));
  check(family.traits.parts == 1 || family.traits.parts == 2, "a layer has at most one cut");
  list().push_back(std::move(family));
  return static_cast<ModelFamily>(list().size() - 1);
}

std::string_view family_meant(std::string_view word) {
  for (const Family& family : list()) {
    const auto is_type = [&](const HfReader& reader) { return reader.model_type == word; };
    if (std::ranges::count(family.other_names, word) > 0 || std::ranges::any_of(family.config.readers, is_type)) {
      return family.name;
    }
  }
  return {};
}

std::string_view preset_meant(std::string_view word) {
  for (const Preset& preset : presets()) {
    if (std::ranges::count(preset.other_names, word) > 0) return preset.name;
  }
  return {};
}

bool is_added(ModelFamily family) { return family > kLastOfBraid; }

}  // namespace model

std::string_view word(ModelFamily family) { return model::families()[static_cast<size_t>(family)].name; }

template <>
std::optional<ModelFamily> value_of<ModelFamily>(std::string_view name) {
  const auto found = std::ranges::find(model::families(), name, &model::Family::name);
  if (found == model::families().end()) return {};
  return static_cast<ModelFamily>(found - model::families().begin());
}

std::ostream& operator<<(std::ostream& out, ModelFamily family) { return out << word(family); }

}  // namespace braid
