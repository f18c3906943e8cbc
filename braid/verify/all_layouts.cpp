// Tries the values of each key of a layout.
#include "braid/verify/all_layouts.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "braid/base/errors.h"
#include "braid/schedule/generators.h"
#include "braid/spec/problems.h"
#include "braid/train/step_schedule.h"
#include "braid/verify/serial_run.h"
#include "braid/verify/shrunk_run.h"

namespace braid::verify {
namespace {

constexpr int kStagesOfZero = 4;

std::vector<int> divisors(int number) {
  std::vector<int> all;
  for (int divisor = 1; divisor <= number; ++divisor) {
    if (number % divisor == 0) all.push_back(divisor);
  }
  return all;
}

// Returns the mesh with each form of context parallelism that is another computation on its ranks.
std::vector<MeshSpec> with_forms(MeshSpec mesh) {
  mesh.context_parallel = MeshSpec().context_parallel;
  mesh.ulysses_ranks = 0;
  std::vector<MeshSpec> all{mesh};
  if (mesh.context == 1) return all;
  for (const auto form : {ContextParallel::AllGather, ContextParallel::Ulysses}) {
    mesh.context_parallel = form;
    all.push_back(mesh);
  }
  mesh.context_parallel = ContextParallel::UlyssesRing;
  for (const int exchange : divisors(mesh.context)) {
    if (exchange == 1 || exchange == mesh.context) continue;
    mesh.ulysses_ranks = exchange;
    all.push_back(mesh);
  }
  return all;
}

std::vector<MeshSpec> meshes(const MeshSpec& like, int ranks) {
  std::vector<MeshSpec> all;
  const auto add = [&](const MeshSpec& mesh) { std::ranges::copy(with_forms(mesh), std::back_inserter(all)); };
  for (const int pipe : divisors(ranks)) {
    for (const int tensor : divisors(ranks / pipe)) {
      for (const int context : divisors(ranks / pipe / tensor)) {
        MeshSpec mesh = like;
        mesh.pipe = pipe, mesh.tensor = tensor, mesh.context = context, mesh.expert = 1;
        mesh.data = ranks / pipe / tensor / context;
        mesh.sequence_parallel = false;
        mesh.batch_shares = MeshSpec().batch_shares;
        add(mesh);
        mesh.sequence_parallel = true;
        if (tensor > 1) add(mesh);
      }
    }
  }
  return all;
}

// Adds the run if braid trains it.
void add_legal(std::vector<RunSpec>& all, RunSpec run, RunSize size) {
  try {
    if (size == RunSize::Shrunk) run = shrunk(run);
    if (spec::has_problems(run, spec::any_hosts()) || !changed_semantics(run).empty() ||
        replayed(run) == Replayed::Stages) {
      return;
    }
    train::refuse_faulty_schedule(run);
  } catch (const ConfigError&) {
    return;
  }
  all.push_back(std::move(run));
}

double work_of(const RunSpec& run) { return 1.0 * run.train.batch * run.model.layers * run.model.width; }

}  // namespace

std::vector<RunSpec> all_layouts(const RunSpec& run, int ranks, RunSize size) {
  std::vector<RunSpec> all;
  for (const MeshSpec& mesh : meshes(run.mesh, ranks)) {
    for (const ScheduleTraits& traits : schedule_traits()) {
      if (mesh.pipe == 1 && traits.name != PipelineSpec().schedule) continue;
      for (int zero = 0; zero < (mesh.data * mesh.context > 1 ? kStagesOfZero : 1); ++zero) {
        RunSpec one = run;
        one.mesh = mesh;
        one.pipeline = {.schedule = std::string(traits.name)};
        one.sync.zero = zero;
        one.sync.zero_group = 0;
        add_legal(all, std::move(one), size);
      }
    }
  }
  std::ranges::stable_sort(all, {}, work_of);
  return all;
}

}  // namespace braid::verify
