// The rows of the list of families.
#include "braid/model/families/list.h"

#include "braid/model/families.h"

namespace braid::model {

std::span<const Family> families() {
  static const Family kFamilies[] = {gpt2_family(), llama_family()};
  static_assert(std::size(kFamilies) == words(ModelFamily()).size());
  return kFamilies;
}

}  // namespace braid::model
