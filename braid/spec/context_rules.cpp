#include "braid/spec/context_rules.h"

#include <algorithm>
#include <bit>

#include "braid/base/text.h"
#include "braid/model/shape.h"
#include "braid/spec/cross_rules.h"

namespace braid::spec {

namespace {

int key_heads_of_rank(const RunSpec& spec) { return std::max(1, model::num_kv_heads(spec.model) / spec.mesh.tensor); }

}  // namespace

int exchange_ranks(const RunSpec& spec) {
  const int ranks = spec.mesh.context;
  switch (spec.mesh.context_parallel) {
    case ContextParallel::Ring:
    case ContextParallel::AllGather:
      return 1;
    case ContextParallel::Ulysses:
      return ranks;
    case ContextParallel::UlyssesRing:
      break;
  }
  if (spec.mesh.ulysses_ranks > 0) return spec.mesh.ulysses_ranks;
  const int key_heads = key_heads_of_rank(spec);
  int exchange = ranks;
  while (ranks % exchange != 0 || key_heads % exchange != 0) --exchange;
  return exchange;
}

int ring_ranks(const RunSpec& spec) { return spec.mesh.context / exchange_ranks(spec); }

double most_exchanged_heads(const RunSpec& spec) {
  const int ranks = exchange_ranks(spec), key_heads = key_heads_of_rank(spec);
  return static_cast<double>((key_heads + ranks - 1) / ranks) * ranks / key_heads;
}

std::vector<CrossRule> context_rules() {
  const auto divides = [](const MeshSpec& mesh) {
    return mesh.ulysses_ranks == 0 || mesh.context % mesh.ulysses_ranks == 0;
  };
  return {
      {{"mesh.context", "model.context"},
       [](const View& at) { return at.spec.model.context % at.spec.mesh.context == 0; },
       [](const View& at) { return cat("must divide model.context (", at.spec.model.context, ")"); }},
      {{"mesh.ulysses_ranks", "mesh.context_parallel"},
       [](const View& at) {
         return at.spec.mesh.ulysses_ranks == 0 || at.spec.mesh.context_parallel == ContextParallel::UlyssesRing;
       },
       [](const View&) { return std::string("must be 0 when mesh.context_parallel is not \"ulysses-ring\""); }},
      {{"mesh.ulysses_ranks", "mesh.context"},
       [divides](const View& at) { return divides(at.spec.mesh); },
       [](const View& at) { return cat("must divide mesh.context (", at.spec.mesh.context, ")"); }},
      {{"mesh.context", "mesh.context_parallel", "mesh.ulysses_ranks", "mesh.tensor", "model.context", "model.kv_heads",
        "model.heads"},
       [divides](const View& at) {
         if (!divides(at.spec.mesh)) return true;  // refused above
         const int ring = ring_ranks(at.spec);
         return ring == 1 || at.spec.model.context % at.spec.mesh.context != 0 ||
                at.spec.model.context % (2 * ring) == 0;
       },
       [](const View& at) {
         return cat("must divide model.context (", at.spec.model.context,
                    ") into parts of an even number of tokens when mesh.context_parallel is \"",
                    at.spec.mesh.context_parallel, "\"");
       }},
      {{"mesh.context", "train.reduction"},
       [](const View& at) {
         const auto ranks = static_cast<unsigned>(at.spec.mesh.context);
         return at.spec.train.reduction != Reduction::Reproducible || std::has_single_bit(ranks);
       },
       [](const View&) { return std::string("must be a power of two when train.reduction is \"reproducible\""); }},
      {{"mesh.context", "train.device"},
       [](const View& at) { return at.spec.mesh.context == 1 || at.spec.train.device == DeviceKind::Cpu; },
       [](const View&) { return std::string("must be 1 with train.device = \"cuda\": it is built for CPUs"); }},
  };
}

}  // namespace braid::spec
