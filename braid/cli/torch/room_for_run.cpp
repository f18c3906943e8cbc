// Compares a run's needs with this host. Memory is predicted as `braid plan` does.
#include "braid/cli/torch/room_for_run.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/base/host_facts.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/disk/disk.h"
#include "braid/disk/folder_problems.h"
#include "braid/mesh/device_mesh.h"
#include "braid/plan/goodput.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/spec/fields.h"
#include "braid/spec/partition.h"
#include "braid/spec/problems.h"
#include "braid/train/compute_device.h"
#include "braid/train/disk_spaces.h"
#include "braid/train/run.h"

namespace braid::cli {
namespace {

constexpr size_t kMostKeysNamed = 3;

// Predicted memory of all ranks of one host, in bytes.
struct HostMemoryUse {
  plan::RankMemory sum;  // of the ranks of the mesh
  int ranks = 0;
  int64_t offloaded = 0, servers = 0;
  int64_t on_disk = 0;  // not in memory

  double bytes() const { return static_cast<double>(sum.total() + offloaded + servers); }
};

// Returns nothing if the run cannot be predicted.
std::optional<HostMemoryUse> predicted_use(const RunSpec& spec, const RunRoom& room) {
  const std::optional<plan::Prediction> known = plan::nominal_prediction(spec);
  if (!known) return std::nullopt;
  const plan::Prediction& prediction = *known;
  const mesh::DeviceMesh mesh(spec.mesh);
  HostMemoryUse use;
  int ranks_of_mesh = 0;
  for (int rank = 0; rank < spec::num_world_ranks(spec); ++rank) {
    if (!room.host_of_rank.empty() && room.host_of_rank.at(static_cast<size_t>(rank)) != room.host) continue;
    ++use.ranks;
    if (rank >= mesh.num_ranks()) {
      use.servers += prediction.server_bytes;
      continue;
    }
    ++ranks_of_mesh;
    const plan::RankMemory& memory = prediction.memory.at(static_cast<size_t>(mesh.coords(rank)[mesh::Axis::Pipe]));
    for (const plan::MemoryPart& part : plan::kMemoryParts) use.sum.*part.bytes += memory.*part.bytes;
  }
  // The prediction puts all ranks on one node, so its offloaded bytes are those of all ranks.
  int64_t& offloaded = spec.memory.optimizer == Tier::Disk ? use.on_disk : use.offloaded;
  offloaded = prediction.offloaded_bytes / mesh.num_ranks() * ranks_of_mesh;
  use.on_disk += train::swap_bytes(spec) * ranks_of_mesh;
  return use;
}

// A key, its value, and the bytes that half the value would save.
struct Saving {
  std::string key;
  int value = 0;
  double bytes = 0;
};

std::vector<Saving> savings(const RunSpec& spec, const RunRoom& room, double bytes) {
  std::vector<Saving> found;
  const auto try_half = [&](const char* key, auto section, auto member) {
    RunSpec half = spec;
    int& value = half.*section.*member;
    const int before = value;
    if (before < 2) return;
    value /= 2;
    if (!spec::problems(half, train::host_limits(1)).empty()) return;
    const std::optional<HostMemoryUse> use = predicted_use(half, room);
    if (use && use->bytes() < bytes) found.push_back({key, before, bytes - use->bytes()});
  };
  const bool model_is_given = !spec.train.init.empty() || !spec.train.resume.empty();
  if (!model_is_given) {
    try_half("model.width", &RunSpec::model, &ModelSpec::width);
    try_half("model.layers", &RunSpec::model, &ModelSpec::layers);
    try_half("model.vocab", &RunSpec::model, &ModelSpec::vocab);
    try_half("model.context", &RunSpec::model, &ModelSpec::context);
  }
  try_half("train.microbatch", &RunSpec::train, &TrainSpec::microbatch);
  std::ranges::stable_sort(found, std::ranges::greater(), &Saving::bytes);
  if (found.size() > kMostKeysNamed) found.resize(kMostKeysNamed);
  return found;
}

std::string parts_text(const HostMemoryUse& use) {
  std::vector<std::string> parts = use.sum.parts_text();
  if (use.offloaded > 0) parts.push_back(cat("offloaded ", human_bytes(static_cast<double>(use.offloaded))));
  if (use.servers > 0) parts.push_back(cat("servers ", human_bytes(static_cast<double>(use.servers))));
  return joined(parts);
}

void add_memory_problem(const RunSpec& spec, const RunRoom& room, std::vector<Problem>& found) {
  if (!train::compute_device(spec).is_cpu()) return;
  const auto available = static_cast<double>(available_memory_bytes());
  const std::optional<HostMemoryUse> use = predicted_use(spec, room);
  if (!use || available <= 0 || use->bytes() <= available) return;
  std::string rule =
      cat("must fit in memory: the ", counted(use->ranks, "rank"), " of this host would hold ",
          human_bytes(use->bytes()), " (", parts_text(*use), "), ", human_bytes(use->bytes() - available),
          " more than the ", human_bytes(available), " that are available");
  const std::vector<Saving> by_key = savings(spec, room, use->bytes());
  for (const Saving& saving : by_key) rule += cat("; half of ", saving.key, " saves ", human_bytes(saving.bytes));
  if (by_key.empty()) {
    found.push_back({spec.train.init.empty() ? "model" : "train.init", "", rule, ""});
  } else {
    found.push_back({by_key[0].key, cat(by_key[0].value), rule, ""});
  }
}

// Returns the bytes of a file, or of all files in a folder; 0 if `path` does not exist.
double bytes_under(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code fault;
  if (fs::is_regular_file(fs::symlink_status(path, fault))) return static_cast<double>(fs::file_size(path, fault));
  double bytes = 0;
  for (fs::recursive_directory_iterator entry(path, fault), end; !fault && entry != end; entry.increment(fault)) {
    std::error_code gone;
    if (entry->is_regular_file(gone) && !entry->is_symlink(gone)) bytes += static_cast<double>(entry->file_size(gone));
  }
  return bytes;
}

int64_t checkpoints_that_stay(const RunRoom& room) {
  return std::ranges::count_if(ckpt::saved_checkpoints(room.folder), [&](const ckpt::SavedCheckpoint& saved) {
    return std::ranges::find(room.removed, saved.directory) == room.removed.end();
  });
}

// Returns the number of further checkpoints that need space at the same time. If saves are by time alone, counts
// only the one at the end: no other is certain.
int64_t checkpoints_to_come(const RunSpec& spec, const RunRoom& room) {
  const int64_t begun = ckpt::checkpoint_step(std::filesystem::path(spec.train.resume).filename().string()).value_or(0);
  const int64_t steps = spec.train.steps - begun, every = spec.train.save_every, keep = spec.checkpoint.keep;
  if (steps <= 0) return 0;
  if (keep == 0) return 1;
  const int64_t saves = every > 0 ? (steps + every - 1) / every : 1;
  const int64_t at_once = std::min<int64_t>(keep + spec.checkpoint.keep_best + 1, saves);
  return std::max<int64_t>(1, at_once - checkpoints_that_stay(room));
}

// Adds what is wrong with the folders of scratch files. Returns the bytes of those on the disk of the run's folder.
int64_t add_scratch_problems(const RunSpec& spec, const RunRoom& room, std::vector<Problem>& found) {
  if (spec.memory.optimizer != Tier::Disk && spec.memory.activations != Tier::Disk) return 0;
  const std::optional<HostMemoryUse> use = predicted_use(spec, room);
  if (!use) return 0;
  disk::Options scratch{.folders = spec.memory.paths, .bytes = use->on_disk};
  if (scratch.folders.empty() && room.folder.empty()) return 0;
  if (scratch.folders.empty()) {
    scratch.folders = {room.folder};
    scratch.key = "train.out";
  }
  for (Problem& problem : disk::problems(scratch)) found.push_back(std::move(problem));
  return room.folder.empty() ? 0 : disk::bytes_beside(room.folder, scratch);
}

void add_disk_problem(const RunSpec& spec, const RunRoom& room, std::vector<Problem>& found) {
  const auto scratch = static_cast<double>(add_scratch_problems(spec, room, found));
  if (room.folder.empty()) return;
  const int64_t count = checkpoints_to_come(spec, room);
  const double each = plan::checkpoint_bytes(spec, plan::nominal_cluster(spec)),
               needed = static_cast<double>(count) * each + scratch;
  auto free = static_cast<double>(PosixFileSystem().free_bytes(room.folder));
  for (const std::string& path : room.removed) free += bytes_under(path);
  if (needed <= free) return;
  found.push_back({"train.out", spec::toml_text(room.folder),
                   cat("must have room for ", counted(count, "checkpoint"), " of ", human_bytes(each),
                       scratch > 0 ? cat(" and ", human_bytes(scratch), " of scratch files") : "", ": ",
                       human_bytes(free), " are free, ", human_bytes(needed - free), " are missing"),
                   ""});
}

}  // namespace

void refuse_without_room(const RunSpec& spec, const RunRoom& room) {
  std::vector<Problem> found;
  add_memory_problem(spec, room, found);
  add_disk_problem(spec, room, found);
  if (!found.empty()) throw ConfigError(std::move(found));
}

}  // namespace braid::cli
