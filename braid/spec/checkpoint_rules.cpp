// The rules between [checkpoint], train.allow_change and other keys.
#include <algorithm>

#include "braid/base/text.h"
#include "braid/spec/change_on_resume.h"
#include "braid/spec/cross_rules.h"

namespace braid::spec {
namespace {

// Returns the first entry of train.allow_change that is not the name of a ByLeave key; empty if there is none.
std::string first_misnamed(const RunSpec& spec) {
  const Strings& named = spec.train.allow_change;
  const auto misnamed = std::find_if(named.begin(), named.end(), [](const std::string& key) {
    const Field* field = find_field(key);
    return !field || change_on_resume(*field) != ChangeOnResume::ByLeave;
  });
  return misnamed == named.end() ? "" : *misnamed;
}

std::string meant(const std::string& key) {
  Strings keys;
  for (const Field& field : fields()) {
    if (change_on_resume(field) == ChangeOnResume::ByLeave) keys.push_back(field.key);
  }
  return nearest(key, keys);
}

}  // namespace

std::vector<CrossRule> checkpoint_rules() {
  return {
      {{"checkpoint.keep_best", "checkpoint.keep"},
       [](const View& at) { return at.spec.checkpoint.keep_best == 0 || at.spec.checkpoint.keep > 0; },
       [](const View&) { return std::string("must be 0 when checkpoint.keep is 0: all stay"); }},
      {{"checkpoint.keep_best", "train.eval_every"},
       [](const View& at) { return at.spec.checkpoint.keep_best == 0 || at.spec.train.eval_every > 0; },
       [](const View&) { return std::string("must be 0 when train.eval_every is 0: no loss says which is best"); }},
      {{"checkpoint.host_gib", "checkpoint.async"},
       [](const View& at) { return at.spec.checkpoint.host_gib == 0 || at.spec.checkpoint.async; },
       [](const View&) { return std::string("must be 0 when checkpoint.async is false: nothing is copied"); }},
      {{"train.allow_change"},
       [](const View& at) {
         return first_misnamed(at.spec).empty() && !std::ranges::count(at.spec.train.allow_change, "");
       },
       [](const View& at) {
         const std::string key = first_misnamed(at.spec), close = meant(key);
         return cat("must name keys that change the training and that a checkpoint can resume with; ", toml_text(key),
                    " is none", close.empty() ? "" : cat(", ", toml_text(close), " is"));
       }},
  };
}

}  // namespace braid::spec
