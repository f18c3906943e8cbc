// A save on background threads. One thread runs at a time and is joined before the next one starts.
#include "braid/ckpt/save_behind.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <system_error>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid::ckpt {
namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kGrainBytes = 1 << 20;  // bytes of a copy that are worth a thread

int64_t place_bytes(const PlannedBox& planned) {
  const int64_t bytes = planned.box.num_elements() * bytes_per_element(planned.tensor.type);
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

struct Stretch {
  std::span<std::byte> to;
  std::span<const std::byte> from;
};

// Copies all stretches in one parallel loop, so that threads are woken once.
void copy_all(const std::vector<Stretch>& stretches) {
  std::vector<int64_t> ends;
  for (const Stretch& stretch : stretches) ends.push_back(std::ssize(stretch.to) + (ends.empty() ? 0 : ends.back()));
  if (ends.empty()) return;
  at::parallel_for(0, ends.back(), kGrainBytes, [&](int64_t begin, int64_t end) {
    auto number = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    for (; begin < end; ++number) {
      const auto& [to, from] = stretches[number];
      const int64_t first = begin - (ends[number] - std::ssize(to)), count = std::min(end, ends[number]) - begin;
      std::memcpy(to.data() + first, from.data() + first, static_cast<size_t>(count));
      begin += count;
    }
  });
}

}  // namespace

int64_t Snapshot::bytes_of(const Shard& shard) {
  int64_t bytes = 0;
  for (const ShardFile& file : shard.files) {
    for (const PlannedBox& planned : file.boxes) bytes += place_bytes(planned);
  }
  return bytes;
}

Snapshot::Snapshot(const Shard& shard) : shard_(shard), memory_(at::empty({bytes_of(shard)}, at::kByte)) {
  memory_.zero_();
  int64_t place = 0;
  for (const ShardFile& file : shard_.files) {
    for (const PlannedBox& planned : file.boxes) {
      places_[{planned.tensor.name, planned.box.begin}] = place;
      place += place_bytes(planned);
    }
  }
}

at::Tensor Snapshot::values(const PlannedBox& planned) const {
  const auto place = places_.find({planned.tensor.name, planned.box.begin});
  check(place != places_.end(), "a snapshot has the boxes of its shard");
  std::byte* const begin = braid::ckpt::bytes_of(memory_).data() + place->second;
  const mesh::Index shape = planned.box.begin.empty() ? mesh::Index() : extents(planned.box);
  return at::from_blob(begin, shape, at::TensorOptions(scalar_type(planned.tensor.type)));
}

void Snapshot::take(const std::vector<PlacedTensor>& tensors) {
  const HeldTensors held(tensors);
  std::vector<Stretch> stretches;
  for (const ShardFile& file : shard_.files) {
    for (const PlannedBox& planned : file.boxes) {
      if (planned.box.num_elements() == 0) continue;
      const at::Tensor box = values(planned);
      for (const auto& [from, in_box] : held.parts(planned.tensor.name, planned.box)) {
        const at::Tensor to = part_of(box, in_box);
        if (from.is_cpu() && from.is_contiguous() && to.is_contiguous()) {
          stretches.push_back({braid::ckpt::bytes_of(to), braid::ckpt::bytes_of(from)});
        } else {
          to.copy_(from);
        }
      }
    }
  }
  copy_all(stretches);
}

// Sums first: if a value is not finite, the sum is not either. If the sum is not finite, checks each value, since the
// sum itself may have overflowed.
std::string Snapshot::weight_not_finite() const {
  const c10::AutoGradMode no_grad(false);
  for (const ShardFile& file : shard_.files) {
    for (const PlannedBox& planned : file.boxes) {
      if (!is_weight(planned.tensor.name)) continue;
      const at::Tensor own = values(planned);
      if (!own.is_floating_point() || std::isfinite(own.sum().item<double>())) continue;
      if (!own.isfinite().all().item<bool>()) return planned.tensor.name;
    }
  }
  return "";
}

BoxRows Snapshot::rows() const {
  return [this](const PlannedBox& planned, int64_t begin, int64_t end) {
    const at::Tensor all = values(planned);
    return all.dim() == 0 ? all : all.narrow(0, begin, end - begin);
  };
}

namespace {

struct GivenUp {};

}  // namespace

SaveBehind::SaveBehind(SavePlan plan, Communicator& world, FileSystem& files)
    : plan_(std::move(plan)), world_(world), files_(files), snapshot_(plan_.shard) {}

SaveBehind::~SaveBehind() {
  given_up_ = true;
  if (thread_.joinable()) thread_.join();
}

// Runs `work` on a thread. If no thread can be started, runs it at once, and the step waits for it.
template <class Work>
void SaveBehind::run(const Work& work) {
  const auto to_its_end = [this, work] {
    try {
      work();
    } catch (const GivenUp&) {
    } catch (...) {
      exception_ = std::current_exception();
    }
    busy_.store(false, std::memory_order_release);
  };
  busy_.store(true, std::memory_order_release);
  try {
    thread_ = std::thread(to_its_end);
  } catch (const std::system_error&) {
    to_its_end();
  }
}

void SaveBehind::join() {
  if (thread_.joinable()) thread_.join();
  if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
}

// Returns the snapshot's rows() with a check: each call throws GivenUp once the save is cancelled.
BoxRows SaveBehind::rows() {
  return [this, of_snapshot = snapshot_.rows()](const PlannedBox& planned, int64_t begin, int64_t end) {
    if (given_up_) throw GivenUp();
    return of_snapshot(planned, begin, end);
  };
}

void SaveBehind::start(const std::string& directory, const CheckpointContent& content) {
  check(!under_way(), "one save at a time is under way");
  world_.queue().drain();  // the values are read on the host
  snapshot_.take(content.tensors);
  directory_ = directory;
  info_ = content.info;
  tokenizer_files_ = content.tokenizer_files;
  save_ = {};
  phase_ = Phase::Opening;
  if (world_.rank() == 0) run([this] { fault_ = opened(directory_, plan_, files_, save_); });
}

bool SaveBehind::advance() {
  check(under_way(), "a save is under way");
  join();
  const std::string fault = std::exchange(fault_, {});
  switch (std::exchange(phase_, Phase::None)) {  // an exception ends the save
    case Phase::Opening:
      agree_on_folder(fault, save_, world_);
      write();
      return false;
    case Phase::Writing:
      publish();
      return false;
    default:
      agree_on_publishing(fault, world_);
      return true;
  }
}

void SaveBehind::write() {
  phase_ = Phase::Writing;
  run([this] {
    const std::string weight = snapshot_.weight_not_finite();
    report_ = weight.empty() ? written(save_.folder, plan_, rows(), files_)
                             : ShardReport{{}, directory_, cat(weight, " is not finite; nothing is saved")};
  });
}

void SaveBehind::publish() {
  manifest_ = {gather_reports(save_, std::exchange(report_, {}), world_), info_};
  phase_ = Phase::Publishing;
  if (world_.rank() != 0) return;
  run([this] { fault_ = published(std::exchange(save_, {}), std::move(manifest_), tokenizer_files_); });
}

void SaveBehind::finish() {
  while (under_way() && !advance()) {
  }
}

}  // namespace braid::ckpt
