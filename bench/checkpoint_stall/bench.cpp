// How long a step stops for a save that is written behind it: GPT-2 124M in float32 with AdamW's states, on one rank
// and on two that share them out, against a copy in memory of the same bytes by the same threads. It does not judge;
// README.md has the numbers.
//
//   bench_checkpoint_stall FOLDER [ROUNDS]
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/support/training_steps.h"
#include "braid/base/clock.h"
#include "braid/base/file_system.h"
#include "braid/ckpt/save_behind.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/param/memory_account.h"
#include "braid/spec/described_model.h"
#include "braid/train/trainer.h"

namespace {

using braid::now_seconds;

struct Round {
  double copy = 0, stall = 0, behind = 0;  // seconds
};

braid::RunSpec gpt2_124m(int ranks) {
  braid::RunSpec spec;
  std::vector<braid::Problem> none;
  spec.model = braid::spec::described_model({.preset = "gpt2-124m"}, none);
  spec.model.context = 64;
  spec.mesh.data = ranks;
  spec.sync.zero = ranks > 1 ? 1 : 0;
  spec.train.batch = ranks;
  spec.train.microbatch = 1;
  return spec;
}

// Every rank copies as many bytes as it saves, at the same time.
double copied(const at::Tensor& from, at::Tensor& to, braid::Communicator& world) {
  world.barrier().wait_host();
  const double begin = now_seconds();
  to.copy_(from);
  world.barrier().wait_host();
  return now_seconds() - begin;
}

std::vector<Round> measured(int ranks, int rounds, const std::string& folder, int64_t& bytes) {
  const braid::RunSpec spec = gpt2_124m(ranks);
  const braid::data::Corpus corpus = bench::random_corpus(spec);
  std::vector<Round> all(static_cast<size_t>(rounds));
  braid::run_ranks(ranks, [&](braid::Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(2 / ranks);
    braid::PosixFileSystem files;
    braid::train::Trainer trainer(spec, corpus, world);
    braid::ckpt::SaveBehind behind(trainer.save_plan(), world, files);
    if (world.rank() == 0) bytes = behind.bytes() * ranks;
    const at::Tensor from = at::empty({behind.bytes()}, at::kByte).fill_(1);
    at::Tensor to = at::empty({behind.bytes()}, at::kByte).fill_(2);
    for (int round = 0; round < rounds; ++round) {
      const double copy = copied(from, to, world);
      const double begin = now_seconds();
      trainer.save("",
                   [&](const braid::ckpt::CheckpointContent& content) { behind.start(folder + "/step-1", content); });
      world.barrier().wait_host();
      const double stall = now_seconds() - begin;
      behind.finish();
      if (world.rank() == 0) all[static_cast<size_t>(round)] = {copy, stall, now_seconds() - begin};
    }
  });
  std::filesystem::remove_all(folder + "/step-1");
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string folder = argv[1];
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  braid::param::install_memory_accounting();
  std::printf(
      "| ranks | GB | copy in memory, s | stall of a save, s | stall / copy | until it is there, s "
      "|\n|---|---|---|---|---|---|\n");
  for (const int ranks : {1, 2}) {
    int64_t bytes = 0;
    std::vector<double> copies, stalls, ratios, behind;
    for (const Round& round : measured(ranks, rounds, folder, bytes)) {
      copies.push_back(round.copy), stalls.push_back(round.stall), behind.push_back(round.behind);
      ratios.push_back(round.stall / round.copy);
    }
    std::printf("| %d | %.2f | %.3f | %.3f | %.2f | %.2f |\n", ranks, static_cast<double>(bytes) * 1e-9,
                bench::median(copies), bench::median(stalls), bench::median(ratios), bench::median(behind));
  }
}
