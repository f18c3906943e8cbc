// Prints what "auto" of memory.recompute is for a run of one rank under limits, beside the bound of Beaumont et al.
// 2019, whose schedules may recompute a block several times:
//
//   bench_recompute LIMIT[,LIMIT ...] KEY=VALUE ...        limits in GiB
//
// A line for each limit: the limit, the policy, its predicted bytes, the seconds that it recomputes for a microbatch on
// the nominal cluster, and the least seconds of nested recomputation. Bytes of the bound are rounded down to 1/500 of
// the limit, as in its authors' tool.
#include <cmath>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "bench/support/rotor.h"
#include "braid/plan/fastest_recompute.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/plan/rank_shards.h"
#include "braid/plan/stage_chain.h"
#include "braid/plan/stage_options.h"
#include "braid/spec/parse.h"

namespace {

using namespace braid;

constexpr int kSlots = 500;

// Returns the chain in slots, with the head as a last block.
plan::RecomputeChain in_slots(plan::RecomputeChain chain, double slot) {
  chain.blocks.front().kept += chain.before;
  chain.blocks.push_back({chain.head, chain.hidden, chain.head_working, chain.head_working, 0});
  for (plan::ChainBlock& block : chain.blocks) {
    block.working = std::floor((block.kept + std::min(block.working, block.at_border)) / slot);
    block.kept = std::floor(block.kept / slot);
    block.at_border = block.working -= block.kept;
    block.input = std::floor(block.input / slot);
  }
  return chain;
}

void print_choice(const RunSpec& spec, double limit_gb) {
  const auto limit = std::llround(std::ldexp(limit_gb, 30));
  const auto found = plan::fastest_recompute(spec, limit, [](const RunSpec&) { return true; }).value();
  const plan::Cluster cluster = plan::with_cores_of_ranks(plan::nominal_cluster(spec), spec);
  const plan::RunLayout layout = plan::layout_of(spec, cluster, plan::FormulaSet::Braid);
  const auto rates = plan::rates_of(spec, cluster);
  const plan::PlannedRun run{spec, cluster, plan::FormulaSet::Braid, layout, rates};
  const plan::RecomputeChain chain = plan::timed_chain(run, 0);
  double seconds = NAN;  // of "selective", which is no choice of segments
  if (const auto policy = spec::recompute_policy(found.policies); policy->keeps != spec::Recompute::Keeps::Selected) {
    seconds = plan::chain_seconds(chain, spec::recomputed_segments(*policy, spec.model.layers));
  }
  const plan::RankMemory& memory = found.prediction.memory[0];
  const double activations = static_cast<double>(limit - memory.total() + memory.activations) -
                             plan::constant_bytes(spec, layout, layout.stages[0]);
  const double nested = plan::Rotor(in_slots(chain, activations / kSlots)).seconds(kSlots);
  std::cout << limit_gb << ' ' << found.policies << ' ' << memory.total() << ' ' << seconds << ' ' << nested << '\n';
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const RunSpec spec = braid::spec::parse_run("", "bench", {words + 2, words + count});
  std::istringstream limits(words[1]);
  for (std::string limit; std::getline(limits, limit, ',');) print_choice(spec, std::stod(limit));
  return 0;
}
