// Schedules with something changed: a few random edits of their programs. Some stay sound.
#pragma once

#include <string>
#include <utility>

#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/schedule/schedule.h"

namespace braid {

class Mutation {
 public:
  explicit Mutation(uint64_t seed) : key_(stream_key(seed, "mutation")) {}

  // One to three edits. Stages and microbatches may leave their range by one.
  Schedule apply(Schedule schedule) {
    for (int edits = 1 + below(3); edits > 0; --edits) {
      const int rank = below(schedule.num_ranks());
      if (schedule.programs[rank].empty()) continue;
      text_ += cat(text_.empty() ? "" : "; ", "rank ", rank, ": ");
      edit(schedule, schedule.programs[rank]);
    }
    return schedule;
  }

  // Returns a description of what apply() did.
  const std::string& text() const { return text_; }

 private:
  int below(size_t limit) { return static_cast<int>(random_bits(key_, count_++) % limit); }

  void edit(const Schedule& schedule, Program& program) {
    const int at = below(program.size());
    Action& action = program[at];
    text_ += cat(braid::text(action), " at ", at, " ");
    switch (below(10)) {
      case 0:
        text_ += "deleted";
        program.erase(program.begin() + at);
        return;
      case 1:
        return insert(program, action, "doubled");
      case 2: {
        const Action moved = action;
        program.erase(program.begin() + at);
        return insert(program, moved, "moved");
      }
      case 3:
        action.micro = below(schedule.num_microbatches + 2) - 1;
        text_ += cat("given microbatch ", action.micro);
        return;
      case 4:
        action.stage = below(schedule.num_stages + 2) - 1;
        text_ += cat("given stage ", action.stage);
        return;
      default:
        text_ += "swapped with the next";
        if (at + 1 < static_cast<int>(program.size())) std::swap(action, program[at + 1]);
    }
  }

  void insert(Program& program, Action action, const char* what) {
    const int to = below(program.size() + 1);
    text_ += cat(what, " to ", to);
    program.insert(program.begin() + to, action);
  }

  const uint64_t key_;
  uint64_t count_ = 0;
  std::string text_;
};

}  // namespace braid
