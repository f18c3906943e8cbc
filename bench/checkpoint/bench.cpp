// Saving and loading GPT-2 124M with AdamW's states, on ranks that hold a share of every tensor each, against dd with
// direct I/O on the same disk; and planning a save of many ranks.
//
//   bench_checkpoint FOLDER ROUNDS LAYERS     FOLDER is on the disk that is measured; 12 layers are GPT-2 124M
//   bench_checkpoint planning
//
// Prints the tables of README.md. A round is dd, save, dd, load for each number of ranks, so that a disk that slows
// down does so for both.
#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/shard_plan.h"
#include "braid/comm/local/run_ranks.h"

namespace {

using namespace braid;

constexpr int kRanks[] = {1, 2};
constexpr int kPlannedRanks[] = {8, 64, 256, 1024};

struct Shaped {
  std::string name;
  mesh::Index shape;
};

std::vector<Shaped> gpt2(int layers) {
  std::vector<Shaped> weights{
      {"wte.weight", {50257, 768}}, {"wpe.weight", {1024, 768}}, {"norm.weight", {768}}, {"norm.bias", {768}}};
  for (int layer = 0; layer < layers; ++layer) {
    const std::string block = cat("blocks.", layer, ".");
    const Shaped parts[] = {{"norm1.weight", {768}}, {"norm1.bias", {768}},        {"qkv.weight", {2304, 768}},
                            {"qkv.bias", {2304}},    {"proj.weight", {768, 768}},  {"proj.bias", {768}},
                            {"norm2.weight", {768}}, {"norm2.bias", {768}},        {"up.weight", {3072, 768}},
                            {"up.bias", {3072}},     {"down.weight", {768, 3072}}, {"down.bias", {768}}};
    for (const auto& [name, shape] : parts) weights.push_back({block + name, shape});
  }
  std::vector<Shaped> all = weights;
  for (const char* state : {"adamw.first_moment/", "adamw.second_moment/"}) {
    for (const auto& [name, shape] : weights) all.push_back({state + name, shape});
  }
  return all;
}

mesh::Placement share_of(const mesh::Index& shape, int rank, int ranks) {
  return mesh::split_dim(shape, 0, (shape[0] + ranks - 1) / ranks * ranks, {rank, ranks, mesh::Axis::Data});
}

std::vector<ckpt::PlacedTensor> held(const std::vector<Shaped>& model, int rank, int ranks) {
  std::vector<ckpt::PlacedTensor> tensors;
  for (const auto& [name, shape] : model) {
    const mesh::Placement placement = share_of(shape, rank, ranks);
    tensors.push_back({name, placement, at::empty(placement.local_shape).normal_()});
  }
  return tensors;
}

double timed(const std::function<void()>& what) {
  const double begin = now_seconds();
  what();
  return now_seconds() - begin;
}

// Drops the file from the page cache, so that the next read is from the disk.
void leave_cache(const std::string& path) {
  std::vector<std::string> files{path};
  if (std::filesystem::is_directory(path)) {
    files.clear();
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  }
  for (const std::string& file : files) {
    const int fd = ::open(file.c_str(), O_RDONLY);
    ::fsync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

void run_command(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw RunError("failed: " + command);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Disk {
 public:
  Disk(std::string folder, const std::vector<Shaped>& model) : folder_(std::move(folder)), model_(model) {
    for (const auto& [name, shape] : model) bytes_ += mesh::num_elements(shape) * 4;
    run_command(cat("head -c ", bytes_, " /dev/urandom > ", source()));
  }
  ~Disk() { std::filesystem::remove(source()); }

  void round(int ranks) {
    std::vector<std::vector<ckpt::PlacedTensor>> tensors;
    for (int rank = 0; rank < ranks; ++rank) tensors.push_back(held(model_, rank, ranks));
    const auto on_ranks = [&](const std::function<void(Communicator&, const std::vector<ckpt::PlacedTensor>&)>& work) {
      return timed([&] {
        run_ranks(ranks, [&](Communicator& world) { work(world, tensors[static_cast<size_t>(world.rank())]); });
      });
    };
    const std::string copy = folder_ + "/dd", step = folder_ + "/step-1";
    auto& seconds = seconds_[ranks];
    seconds["dd write"].push_back(timed(
        [&] { run_command(cat("dd if=", source(), " of=", copy, " bs=4M oflag=direct conv=fsync status=none")); }));
    seconds["save"].push_back(on_ranks([&](Communicator& world, const auto& own) {
      ckpt::save_checkpoint(step, {own, {1, "", "bytes", 0}}, world);
    }));
    leave_cache(copy);
    leave_cache(step);
    seconds["dd read"].push_back(
        timed([&] { run_command(cat("dd if=", copy, " of=/dev/null bs=4M iflag=direct status=none")); }));
    seconds["load"].push_back(
        on_ranks([&](Communicator& world, const auto& own) { ckpt::load_in_one_pass(step, own, world); }));
    std::filesystem::remove(copy);
    std::filesystem::remove_all(step);
  }

  void print() const {
    std::printf(
        "| ranks | MB | save, s | dd, s | of dd | load, s | dd, s | of dd |\n|---|---|---|---|---|---|---|---|\n");
    for (const auto& [ranks, all] : seconds_) {
      const auto middle = [&](const char* what) { return median(all.at(what)); };
      std::printf("| %d | %.0f | %.2f | %.2f | %.0f %% | %.2f | %.2f | %.0f %% |\n", ranks,
                  static_cast<double>(bytes_) / 1e6, middle("save"), middle("dd write"),
                  100 * middle("dd write") / middle("save"), middle("load"), middle("dd read"),
                  100 * middle("dd read") / middle("load"));
    }
  }

 private:
  std::string source() const { return cat("/dev/shm/bench_checkpoint_", ::getpid()); }

  const std::string folder_;
  const std::vector<Shaped>& model_;
  int64_t bytes_ = 0;
  std::map<int, std::map<std::string, std::vector<double>>> seconds_;
};

// Times the plan of a model of 24 layers, each shard of which `replicas` ranks hold.
double planning_seconds(int ranks, int replicas) {
  std::vector<std::string> listings;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<ckpt::ListedTensor> listing;
    for (const auto& [name, shape] : gpt2(24)) {
      const mesh::Placement placement = share_of(shape, rank / replicas, ranks / replicas);
      listing.push_back({{name, ckpt::ElementType::F32, shape}, {}});
      for (const mesh::Piece& piece : placement.pieces) listing.back().boxes.push_back(piece.global);
    }
    listings.push_back(ckpt::packed(listing));
  }
  return timed([&] { ckpt::shard_of(ckpt::plan_world(listings), ranks - 1); });
}

void print_planning() {
  std::printf("| ranks | all share, ms | eight replicas, ms | all replicas, ms |\n|---|---|---|---|\n");
  for (const int ranks : kPlannedRanks) {
    std::printf("| %d", ranks);
    for (const int replicas : {1, 8, ranks}) {
      std::vector<double> seconds;
      for (int i = 0; i < 3; ++i) seconds.push_back(planning_seconds(ranks, replicas));
      std::printf(" | %.1f", 1e3 * median(seconds));
      std::fflush(stdout);
    }
    std::printf(" |\n");
  }
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::string(words[1]) == "planning") {
    print_planning();
    return 0;
  }
  if (count != 4) {
    std::fprintf(stderr, "bench_checkpoint FOLDER ROUNDS LAYERS | bench_checkpoint planning\n");
    return 2;
  }
  const std::vector<Shaped> model = gpt2(std::atoi(words[3]));
  Disk disk(words[1], model);
  for (int round = 0; round < std::atoi(words[2]); ++round) {
    for (const int ranks : kRanks) disk.round(ranks);
  }
  disk.print();
  return 0;
}
