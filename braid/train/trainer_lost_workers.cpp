// A trainer whose workers may be lost: the agreement with the others, and the timeline of those that are there.
#include <utility>

#include "braid/train/timeline_exchange.h"
#include "braid/train/trainer.h"

namespace braid::train {

void Trainer::begin_losses() {
  if (losses_ && !losses_->begun()) losses_->begin(num_steps_, groups_->world);
}

// Whenever MembersLost is thrown here, the workers that are there have done all their work up to this step.
void Trainer::take_over() {
  for (;;) {
    try {
      for (const SampleShare& share : losses_->take_over(num_steps_, groups_->world)) train_on_share(share);
      return groups_->world.barrier().wait_host();
    } catch (const comm::MembersLost&) {
    }
  }
}

schedule::Timeline Trainer::timeline() const {
  schedule::Timeline there = gathered_timeline(spans_, on_disk_->transfers(), groups_->world);
  if (!losses_) return there;
  schedule::Timeline all;
  all.ranks.resize(static_cast<size_t>(groups_->mesh.num_ranks()));
  all.disk.resize(all.ranks.size());
  for (size_t place = 0; place < there.ranks.size(); ++place) {
    const auto worker = static_cast<size_t>(losses_->workers()[place]);
    all.ranks[worker] = std::move(there.ranks[place]);
    all.disk[worker] = std::move(there.disk[place]);
  }
  return all;
}

}  // namespace braid::train
