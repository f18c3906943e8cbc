// The changes that a resumed run may make to each key of the configuration.
#pragma once

#include "braid/spec/fields.h"

namespace braid::spec {

enum class ChangeOnResume {
  Free,     // what is trained stays the same, or what the key names is compared by its content
  ByLeave,  // a number of the training: where train.allow_change names the key
  Never,    // the model, the seed, what decides which samples come in which order
};

// Every key of a section is as the section, but for those that have a row of their own.
ChangeOnResume change_on_resume(const Field& field);

}  // namespace braid::spec
