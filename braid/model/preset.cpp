// The presets of all families.
#include "braid/model/preset.h"

#include "braid/model/families.h"

namespace braid::model {

const std::vector<Preset>& presets() {
  static const std::vector<Preset> kPresets = [] {
    std::vector<Preset> all;
    for (const Family& family : families()) all.insert(all.end(), family.presets.begin(), family.presets.end());
    return all;
  }();
  return kPresets;
}

}  // namespace braid::model
