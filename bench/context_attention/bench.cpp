// Times attention of sequences whose tokens two thread ranks share, through attention_core(), beside the same sequences
// on one rank. One thread each; the ranks take turns with the one rank. README.md has the numbers.
#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdio>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/median.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/nn/attention.h"
#include "braid/param/memory_account.h"

namespace braid::bench {
namespace {

constexpr int kRanks = 2, kRounds = 8;
constexpr int64_t kHeads = 8, kKeyHeads = 8, kFeatures = 64, kTokens = 8192;
constexpr int64_t kDocument = 1000;  // tokens of a document

struct Form {
  const char* name;
  bool rings, gathers;
};
constexpr Form kForms[] = {{"ring", true, false}, {"all-gather", true, true}, {"ulysses", false, false}};

nn::CoreCall call_of(bool documents) {
  nn::CoreCall call{.heads = kHeads, .kv_heads = kKeyHeads};
  if (documents) call.documents_bt = at::arange(kTokens, at::kLong).div(kDocument, "floor").unsqueeze(0);
  return call;
}

nn::ContextGroup group_of(const Form& form, Communicator& ranks) {
  const auto keys = form.gathers ? nn::RingKeys::Gathered : nn::RingKeys::GoAround;
  return {&ranks, form.rings ? nullptr : &ranks, form.rings ? &ranks : nullptr, keys};
}

// Returns the seconds of forward and backward of `tokens` tokens.
double seconds_of(int64_t tokens, const nn::CoreCall& call) {
  const at::Tensor qkv = at::randn({1, tokens, (kHeads + 2 * kKeyHeads) * kFeatures}).requires_grad_();
  const at::Tensor dy = at::randn({1, tokens, kHeads * kFeatures});
  if (call.context.ranks) call.context.ranks->barrier().wait_host();
  const double begin = now_seconds();
  torch::autograd::grad({nn::attention_core(qkv, call).value}, {qkv}, {dy});
  if (call.context.ranks) call.context.ranks->barrier().wait_host();
  return now_seconds() - begin;
}

void time_form(const Form& form, bool documents) {
  std::vector<double> alone, together, ratio;
  run_ranks(kRanks, [&](Communicator& ranks) {
    at::set_num_threads(1);
    nn::CoreCall shared = call_of(documents);
    shared.context = group_of(form, ranks);
    for (int round = 0; round <= kRounds; ++round) {
      double one = 0;
      if (ranks.rank() == 0) one = seconds_of(kTokens, call_of(documents));
      const double both = seconds_of(kTokens / kRanks, shared);
      if (ranks.rank() != 0 || round == 0) continue;  // first touch
      alone.push_back(one), together.push_back(both), ratio.push_back(one / kRanks / both);
    }
  });
  std::printf("| %s | %s | %.0f | %.0f | %.3f |\n", form.name, documents ? "of 1,000 tokens" : "none",
              median(alone) * 1e3, median(together) * 1e3, median(ratio));
  std::fflush(stdout);
}

}  // namespace
}  // namespace braid::bench

int main() {
  using namespace braid::bench;
  braid::param::install_memory_accounting();  // a trainer's allocator
  std::printf("| form | documents | one rank, ms | two ranks, ms | part of ideal halving |\n|---|---|---|---|---|\n");
  for (const bool documents : {false, true}) {
    for (const Form& form : kForms) time_form(form, documents);
  }
  return 0;
}
