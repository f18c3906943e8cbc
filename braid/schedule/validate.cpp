// Checks the owners of stages, then takes a census of the actions, then checks the rules (rules.h).
#include "braid/schedule/validate.h"

#include <algorithm>

#include "braid/base/text.h"
#include "braid/schedule/rules.h"

namespace braid::schedule {
namespace {

class Validator {
 public:
  Validator(const Schedule& schedule, SendMode mode) : schedule_(schedule), mode_(mode), positions_(schedule) {}

  std::vector<Fault> faults() {
    if (!owners_are_ranks()) return faults_;
    const bool in_range = census();
    check_microbatches(schedule_, positions_, faults_);
    check_weight_use(schedule_, positions_, faults_);
    if (in_range) {
      check_programs(schedule_, faults_);
      check_progress(schedule_, mode_, positions_, faults_);
    }
    std::stable_sort(faults_.begin(), faults_.end(), [](const Fault& a, const Fault& b) {
      return std::pair(a.rank, static_cast<unsigned>(a.position)) <
             std::pair(b.rank, static_cast<unsigned>(b.position));
    });
    return std::move(faults_);
  }

 private:
  void fault(int rank, int position, std::string text) { faults_.push_back({rank, position, std::move(text)}); }

  bool owners_are_ranks() {
    check_owners(schedule_.stage_rank, "");
    if (!schedule_.mirrored()) return faults_.empty();
    check_owners(schedule_.mirror_rank, " in the second direction");
    const int from = schedule_.mirror_from;
    if (from < 0 || from > schedule_.num_microbatches) {
      fault(-1, -1, cat("the second direction begins at microbatch ", from, ", which does not exist"));
    }
    return faults_.empty();
  }

  void check_owners(const std::vector<int>& owners, const char* direction) {
    if (static_cast<int>(owners.size()) != schedule_.num_stages) {
      fault(-1, -1,
            cat(braid::counted(schedule_.num_stages, "stage"), ", but ", owners.size(), " have an owner", direction));
    }
    for (size_t stage = 0; stage < owners.size(); ++stage) {
      const int rank = owners[stage];
      if (rank >= 0 && rank < schedule_.num_ranks()) continue;
      fault(-1, -1, cat("stage ", stage, " is owned by rank ", rank, direction, ", which does not exist"));
    }
  }

  // Fills positions_. Returns false if an action names a stage or a microbatch that does not exist.
  bool census() {
    bool in_range = true;
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      const Program& program = schedule_.programs[rank];
      for (int i = 0; i < static_cast<int>(program.size()); ++i) in_range &= counted(rank, i, program[i]);
    }
    return in_range;
  }

  bool counted(int rank, int index, const Action& action) {
    const bool whole_stage = of_whole_stage(action.op);
    if (action.stage < 0 || action.stage >= schedule_.num_stages) {
      fault(rank, index, cat(braid::text(action), ": there is no stage ", action.stage));
      return false;
    }
    if (!whole_stage && (action.micro < 0 || action.micro >= schedule_.num_microbatches)) {
      fault(rank, index, cat(braid::text(action), ": there is no microbatch ", action.micro));
      return false;
    }
    const int micro = whole_stage ? first_micro(action.stage, rank) : action.micro;
    if (schedule_.rank_of(action.stage, micro) != rank) {
      fault(rank, index, cat(braid::text(action), ": its stage is on rank ", schedule_.rank_of(action.stage, micro)));
      return true;
    }
    if (action.op == Op::Unshard || action.op == Op::Reshard) return true;  // both may repeat (program_rules.cpp)
    if (positions_.note(action.op, action.stage, micro, index) != Positions::kMissing) {
      fault(rank, index, cat(braid::text(action), ": appears a second time"));
    }
    return true;
  }

  // Returns the first microbatch of the stage's copy on that rank, if there is one.
  int first_micro(int stage, int rank) const {
    const bool second = schedule_.mirrored() && schedule_.stage_rank[stage] != rank;
    return second && schedule_.mirror_from < schedule_.num_microbatches ? schedule_.mirror_from : 0;
  }

  const Schedule& schedule_;
  const SendMode mode_;
  Positions positions_;
  std::vector<Fault> faults_;
};

}  // namespace

std::vector<Fault> validate(const Schedule& schedule, SendMode mode) { return Validator(schedule, mode).faults(); }

}  // namespace braid::schedule
