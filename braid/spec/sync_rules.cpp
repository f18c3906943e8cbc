// What must hold between the keys of [sync] and the mesh.
#include "braid/base/text.h"
#include "braid/spec/cross_rules.h"

namespace braid {

std::vector<CrossRule> sync_rules() {
  return {
      {{"sync.zero_group", "mesh.data"},
       [](const View& at) {
         const int group = at.spec.sync.zero_group;
         return group == 0 || (group <= at.spec.mesh.data && at.spec.mesh.data % group == 0);
       },
       [](const View& at) { return cat("must be 0 or divide mesh.data (", at.spec.mesh.data, ")"); }},
  };
}

}  // namespace braid
