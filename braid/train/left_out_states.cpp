// Residuals of another compression or of other ranks, and states of parameters that were frozen.
#include "braid/train/left_out_states.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "braid/base/text.h"
#include "braid/spec/fields.h"
#include "braid/spec/parameter_groups.h"
#include "braid/sync/bucketed_all_reduce.h"
#include "braid/train/resume.h"

namespace braid::train {
namespace {

// Describes a changed compression or changed ranks; "" if the saved residuals fit.
std::string reducer_state_problem(const RunSpec& spec, const ckpt::CheckpointInfo& info, const std::string& directory) {
  if (info.config_toml.empty()) return cat(directory, " has no configuration");
  const RunSpec saved = saved_spec(info, directory);
  spec::Strings keys{"sync.compression", "sync.compression_rank"};
  keys.insert(keys.end(), std::begin(kRanksOfResiduals), std::end(kRanksOfResiduals));
  for (const std::string& key : keys) {
    const std::string was = spec::value_text(*spec::find_field(key), saved),
                      is = spec::value_text(*spec::find_field(key), spec);
    if (was != is) return cat(key, " was ", was, " in ", directory, " and is ", is);
  }
  return "";
}

}  // namespace

std::string leave_out_reducer_state(std::vector<ckpt::PlacedTensor>& tensors, const RunSpec& spec,
                                    const ckpt::CheckpointInfo& info, const std::string& directory) {
  const auto carried_over = [](const ckpt::PlacedTensor& each) { return each.name.starts_with(sync::kReducerState); };
  if (std::none_of(tensors.begin(), tensors.end(), carried_over)) return "";
  const std::string why = reducer_state_problem(spec, info, directory);
  if (why.empty()) return "";
  std::erase_if(tensors, carried_over);
  return "the residuals of compression begin at zero: " + why;
}

std::vector<std::string> leave_out_states_of_frozen(std::vector<ckpt::PlacedTensor>& tensors,
                                                    const ckpt::CheckpointInfo& info, const std::string& directory) {
  if (info.config_toml.empty()) return {};
  const RunSpec saved = saved_spec(info, directory);
  std::set<std::string> released;
  std::erase_if(tensors, [&](const ckpt::PlacedTensor& each) {
    const std::string name = each.name.substr(each.name.rfind('/') + 1);
    if (ckpt::is_weight(each.name) || !spec::is_frozen(saved.optimizer, name)) return false;
    released.insert(name);
    return true;
  });
  return {released.begin(), released.end()};
}

}  // namespace braid::train
