// Names of tensors in a checkpoint, and which of them are read.
#include "braid/train/saved_tensors.h"

#include <algorithm>
#include <iterator>

#include "braid/ckpt/manifest.h"
#include "braid/mesh/flat_range.h"

namespace braid {
namespace {

// As Replication::state() and own_prefix() name them.
bool is_of_replication(const std::string& name) { return name.find('/') != name.npos && !name.starts_with("adamw."); }

// What the rank owns of a parameter: `flat` is a 1-D tensor of a range, of which these are the first elements.
class Listing {
 public:
  explicit Listing(const Parameter& param) : param_(param) {}

  void add(const std::string& prefix, const OwnedRange& range, const at::Tensor& flat) {
    const int64_t begin = std::max(range.begin, param_.offset) - param_.offset;
    const int64_t end = std::min(range.end, param_.offset + param_.num_elements()) - param_.offset;
    if (begin >= end) return;
    for (const Fragment& part : fragments(param_.placement, begin, end)) {
      const int64_t at = param_.offset + part.begin - range.begin;
      const at::Tensor local = flat.narrow(0, at, num_elements(part.placement.local_shape));
      tensors.push_back({prefix + param_.name, part.placement, local.view(part.placement.local_shape)});
    }
  }

  std::vector<PlacedTensor> tensors;

 private:
  const Parameter& param_;
};

}  // namespace

std::vector<PlacedTensor> saved_tensors(const ParamStore& store, const AdamW& optimizer, Replication& replication) {
  const std::string own = replication.own_prefix();
  std::vector<PlacedTensor> tensors;
  for (const Parameter& param : store.params()) {
    Listing listing(param);
    const auto add = [&](const std::string& whose) {
      for (const OwnedRange& range : store.owned()) {
        const auto of_range = [&](const at::Tensor& flat) { return flat.narrow(0, range.place, range.length()); };
        listing.add(whose, range, range.master);
        listing.add(whose + "adamw.first_moment/", range, of_range(optimizer.first_moment()));
        listing.add(whose + "adamw.second_moment/", range, of_range(optimizer.second_moment()));
      }
    };
    add("");
    if (!own.empty()) add(own);
    std::move(listing.tensors.begin(), listing.tensors.end(), std::back_inserter(tensors));
  }
  for (ReplicationState& state : replication.state()) tensors.push_back({state.name, state.placement, state.local});
  return tensors;
}

std::vector<PlacedTensor> on_host(std::vector<PlacedTensor> tensors) {
  for (PlacedTensor& placed : tensors) placed.local = placed.local.cpu();
  return tensors;
}

void load_tensors(const std::string& directory, const CheckpointInfo& info, std::vector<PlacedTensor> tensors) {
  if (!info.counters.contains(kReplicasApart)) {
    const Manifest manifest = read_manifest(found_directory(directory));
    std::erase_if(tensors, [&](const PlacedTensor& placed) {
      return is_of_replication(placed.name) && !manifest.tensors.contains(placed.name);
    });
  }
  const auto read = on_host(tensors);
  load_checkpoint(directory, read);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].local.is_cpu()) tensors[i].local.copy_(read[i].local);
  }
}

}  // namespace braid
