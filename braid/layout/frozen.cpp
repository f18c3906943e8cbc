// Marks parameters block by block.
#include "braid/layout/frozen.h"

namespace braid::layout {

void mark_frozen(ModelParams& params, const std::function<bool(const std::string& name)>& is_frozen) {
  for (BlockSpec& block : params) {
    for (ParamSpec& param : block.params) {
      if (is_frozen(param.name)) param.trained = model::Trained::No;
    }
  }
}

}  // namespace braid::layout
