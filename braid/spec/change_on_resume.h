// The changes that a resumed run may make to each key of the configuration.
#pragma once

#include "braid/spec/fields.h"

namespace braid::spec {

enum class ChangeOnResume {
  Free,     // may change: training stays the same, or the content that the key names is compared instead
  ByLeave,  // may change if train.allow_change lists the key, since it affects training
  Never,    // may not change: the model, the seed, and the keys that determine the order of samples
};

// Returns the rule of the field's own key if the table has one, else the rule of its section.
ChangeOnResume change_on_resume(const Field& field);

}  // namespace braid::spec
