// Tries the values of each key of a layout.
#include "braid/verify/all_layouts.h"

#include <algorithm>
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

std::vector<MeshSpec> meshes(const MeshSpec& like, int ranks) {
  std::vector<MeshSpec> all;
  for (const int pipe : divisors(ranks)) {
    for (const int tensor : divisors(ranks / pipe)) {
      for (const bool splits : {false, true}) {
        if (splits && tensor == 1) continue;
        MeshSpec mesh = like;
        mesh.pipe = pipe, mesh.tensor = tensor, mesh.data = ranks / pipe / tensor;
        mesh.context = mesh.expert = 1;
        mesh.sequence_parallel = splits;
        mesh.batch_shares = MeshSpec().batch_shares;
        all.push_back(mesh);
      }
    }
  }
  return all;
}

// Adds the run if braid trains it.
void add_legal(std::vector<RunSpec>& all, RunSpec run, RunSize size) {
  try {
    if (size == RunSize::Shrunk) run = shrunk(run);
    if (spec::has_problems(run, spec::any_hosts()) || !changed_semantics(run).empty()) return;
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
      for (int zero = 0; zero < (mesh.data > 1 ? kStagesOfZero : 1); ++zero) {
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
