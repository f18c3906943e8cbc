// The conversion between schedules and tables of actions. It does not check that a schedule can run (validate.h).
#include "braid/schedule/csv.h"

#include <algorithm>
#include <limits>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/timeline.h"

namespace braid::schedule {
namespace {

// Calls use(piece) for each piece of text between separators; "a,,b" has three pieces.
template <class Use>
void split(std::string_view text, char separator, const Use& use) {
  while (true) {
    const size_t end = text.find(separator);
    use(text.substr(0, end));
    if (end == text.npos) return;
    text.remove_prefix(end + 1);
  }
}

class Reader {
 public:
  Schedule read(std::string_view table, std::string name) {
    if (table.ends_with('\n')) table.remove_suffix(1);
    if (table.find_first_not_of(" \r\n") == table.npos) throw ConfigError({{"table", "", "has no rows", ""}});
    if (std::count(table.begin(), table.end(), '\n') >= kMostRows) {
      throw ConfigError({{"table", "", cat("has more than ", kMostRows, " rows, one for each rank"), ""}});
    }
    schedule_.name = std::move(name);
    split(table, '\n', [&](std::string_view row) { read_row(row); });
    schedule_.num_stages = static_cast<int>(stages_.size());
    refuse_gaps();
    place_stages();
    refuse_too_few_actions();
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
    return std::move(schedule_);
  }

 private:
  // One rank's copy of one stage.
  struct Copy {
    int rank = 0;
    int least = std::numeric_limits<int>::max();  // lowest microbatch
    int most = -1;
    std::string place, word;  // place and word of its first cell
  };

  void read_row(std::string_view row) {
    schedule_.programs.emplace_back();
    if (row.find_first_not_of(" \r") == row.npos) {
      problems_.push_back({cat("row ", schedule_.programs.size()), "",
                           "is blank; remove it, or write \",\" for a rank without actions", ""});
      return;
    }
    int column = 0;
    split(row, ',', [&](std::string_view cell) {
      ++column;
      const size_t begin = std::min(cell.find_first_not_of(" \r"), cell.size());
      cell.remove_prefix(begin);
      cell = cell.substr(0, cell.find_last_not_of(" \r") + 1);
      if (!cell.empty()) read_cell(cell, column);
    });
  }

  void read_cell(std::string_view cell, int column) {
    const std::string place = cat("row ", schedule_.programs.size(), ", column ", column);
    if (cell.size() > kLongestWord) {
      problems_.push_back({place, cat(cell.substr(0, kLongestWord / 4), "..."),
                           cat("has ", counted(cell.size(), "character"), ", more than any action"), ""});
      return;
    }
    try {
      for (const Action& action : parse_word(cell)) add(action, place, cell);
    } catch (const ConfigError& error) {
      for (Problem problem : error.problems()) {
        problem.key = place;
        problems_.push_back(problem);
      }
    }
  }

  void add(const Action& action, const std::string& place, std::string_view cell) {
    if (action.stage >= kMostStages) {
      problems_.push_back({place, std::string(cell), cat("has a stage beyond ", kMostStages - 1), ""});
      return;
    }
    if (action.micro >= kMostMicrobatches) {
      problems_.push_back({place, std::string(cell), cat("has a microbatch beyond ", kMostMicrobatches - 1), ""});
      return;
    }
    if (action.stage >= static_cast<int>(stages_.size())) stages_.resize(action.stage + 1);
    auto& copies = stages_[action.stage];
    const int rank = schedule_.num_ranks() - 1;
    if (copies.empty() || copies.back().rank != rank) {
      copies.push_back({.rank = rank, .place = place, .word = std::string(cell)});
    }
    if (!of_whole_stage(action.op)) {
      copies.back().least = std::min(copies.back().least, action.micro);
      copies.back().most = std::max(copies.back().most, action.micro);
    }
    schedule_.num_microbatches = std::max(schedule_.num_microbatches, action.micro + 1);
    schedule_.programs.back().push_back(action);
  }

  // Reports stages that are on no rank. It names only the first ones, because a typing error may leave a million.
  void refuse_gaps() {
    int64_t num_gaps = 0;
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      if (!stages_[stage].empty() || ++num_gaps > kMostNamed) continue;
      problems_.push_back({cat("stage ", stage), "", "is on no rank, though a later stage is", ""});
    }
    if (num_gaps <= kMostNamed) return;
    problems_.push_back({"stages", "", cat("are on no rank: ", num_gaps - kMostNamed, " more"), ""});
  }

  // Reports a table with far too few actions. A valid table has actions for each stage and microbatch, and the check of
  // an invalid one allocates memory for all of these pairs.
  void refuse_too_few_actions() {
    int64_t num_actions = 0;
    for (const Program& program : schedule_.programs) num_actions += static_cast<int64_t>(program.size());
    const int64_t num_places = int64_t{schedule_.num_stages} * schedule_.num_microbatches;
    if (num_places <= std::max(num_actions, kMostPlaces)) return;
    problems_.push_back(
        {"table", "",
         cat("has ", counted(num_actions, "action"), ", too few for ", counted(schedule_.num_stages, "stage"), " and ",
             counted(schedule_.num_microbatches, "microbatch")),
         ""});
  }

  // Sets the rank of each stage, or two ranks that divide its microbatches. The first then runs those from 0 on. The
  // second runs those from some microbatch on, which is the same for all stages.
  void place_stages() {
    int from = 0;  // lowest microbatch with which second copies may begin, from the stages seen so far
    int least_second = std::numeric_limits<int>::max();
    for (auto& copies : stages_) {
      std::stable_sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) { return a.least < b.least; });
      for (size_t i = 1; i < copies.size(); ++i) {
        const bool shares = i == 1 && copies[0].most < copies[1].least && copies[1].most >= 0;
        if (!shares) refuse_copy(copies[0], copies[i]);
        if (!shares) continue;
        from = std::max(from, copies[0].most + 1);
        least_second = std::min(least_second, copies[1].least);
      }
      schedule_.stage_rank.push_back(copies.empty() ? -1 : copies[0].rank);
      schedule_.mirror_rank.push_back(copies.size() > 1 ? copies[1].rank : schedule_.stage_rank.back());
    }
    schedule_.mirror_from = from;
    if (from == 0) schedule_.mirror_rank.clear();
    if (from > least_second) {
      const std::string rule = cat("are shared by two ranks, but not at one microbatch: one rank runs ", from - 1,
                                   " of the first direction, another ", least_second, " of the second");
      problems_.push_back({"stages", "", rule, ""});
    }
  }

  void refuse_copy(const Copy& has, const Copy& wants) {
    const Copy& late = wants.rank > has.rank ? wants : has;
    const Copy& early = wants.rank > has.rank ? has : wants;
    const std::string rule = cat("puts its stage on rank ", late.rank, ", but rank ", early.rank,
                                 " has it, and they do not share the microbatches in a lower and an upper part");
    problems_.push_back({late.place, late.word, rule, ""});
  }

  // Limits, so that a typing error does not allocate gigabytes.
  static constexpr int kMostRows = 1 << 20, kMostStages = 1 << 20, kMostMicrobatches = 1 << 24;
  static constexpr int64_t kMostPlaces = 1 << 24, kMostNamed = 16;
  static constexpr size_t kLongestWord = 200;

  Schedule schedule_;
  std::vector<std::vector<Copy>> stages_;  // by stage: its copies, in the order of their ranks until place_stages()
  std::vector<Problem> problems_;
};

bool only_computes(const Schedule& schedule) {
  return std::all_of(schedule.programs.begin(), schedule.programs.end(), [](const Program& program) {
    return std::all_of(program.begin(), program.end(),
                       [](const Action& action) { return action.op <= Op::WeightGrad; });
  });
}

}  // namespace

std::string to_csv(const Schedule& schedule) {
  const bool slots = only_computes(schedule);
  const Timeline timeline = slots ? unit_time(schedule) : Timeline{};
  std::string table;
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    const Program& program = schedule.programs[rank];
    int column = 0;
    int next = 0;
    for (size_t i = 0; i < program.size(); ++i) {
      if (pair_ends(program, i)) continue;
      const bool timed = slots && i < timeline.ranks[rank].size();
      const int at = timed ? static_cast<int>(timeline.ranks[rank][i].begin) : next;
      table.append(at - column, ',');
      table += word_at(program, i);
      column = at;
      next = at + 1;
    }
    table += program.empty() ? ",\n" : "\n";
  }
  return table;
}

Schedule from_csv(std::string_view table, std::string name) { return Reader().read(table, std::move(name)); }

}  // namespace braid::schedule
