// The generators and their table. They know nothing of transfers, costs or clocks.
#include "braid/schedule/generators.h"

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

struct Generator {
  const char* name;
  Schedule (*generate)(int ranks, int microbatches);
};

constexpr Generator kGenerators[] = {
    {"gpipe", gpipe},
    {"1f1b", one_f_one_b},
};

// Rank r owns stage r and runs two actions per microbatch.
Schedule one_stage_per_rank(const char* name, int ranks, int microbatches) {
  check(ranks >= 1 && microbatches >= 1, "a schedule needs a rank and a microbatch");
  Schedule schedule{name, ranks, microbatches, {}, std::vector<Program>(ranks)};
  for (int rank = 0; rank < ranks; ++rank) {
    schedule.stage_rank.push_back(rank);
    schedule.programs[rank].reserve(2 * static_cast<size_t>(microbatches));
  }
  return schedule;
}

}  // namespace

Schedule gpipe(int ranks, int microbatches) {
  Schedule schedule = one_stage_per_rank("gpipe", ranks, microbatches);
  for (int rank = 0; rank < ranks; ++rank) {
    Program& program = schedule.programs[rank];
    for (int micro = 0; micro < microbatches; ++micro) program.push_back({Op::Forward, rank, micro});
    for (int micro = 0; micro < microbatches; ++micro) program.push_back({Op::FullBackward, rank, micro});
  }
  return schedule;
}

Schedule one_f_one_b(int ranks, int microbatches) {
  Schedule schedule = one_stage_per_rank("1f1b", ranks, microbatches);
  for (int rank = 0; rank < ranks; ++rank) {
    Program& program = schedule.programs[rank];
    const int warmup = std::min(microbatches, ranks - 1 - rank);
    for (int micro = 0; micro < warmup; ++micro) program.push_back({Op::Forward, rank, micro});
    for (int micro = 0; micro < microbatches; ++micro) {
      if (warmup + micro < microbatches) program.push_back({Op::Forward, rank, warmup + micro});
      program.push_back({Op::FullBackward, rank, micro});
    }
  }
  return schedule;
}

Schedule make_schedule(std::string_view name, const ScheduleRequest& request) {
  const auto [ranks, microbatches] = std::pair(request.ranks, request.microbatches);
  const auto* found = std::find_if(std::begin(kGenerators), std::end(kGenerators),
                                   [&](const Generator& generator) { return generator.name == name; });
  std::vector<Problem> problems;
  if (found == std::end(kGenerators)) {
    const std::string rule = cat("must be one of ", joined(schedule_names()));
    problems.push_back({"schedule", std::string(name), rule, nearest(name, schedule_names())});
  }
  if (ranks < 1) problems.push_back({"ranks", std::to_string(ranks), "must be at least 1", "1"});
  if (microbatches < 1) problems.push_back({"microbatches", std::to_string(microbatches), "must be at least 1", "1"});
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return found->generate(ranks, microbatches);
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& generator : kGenerators) names.emplace_back(generator.name);
  return names;
}

}  // namespace braid
