// Tables of actions as text. It does not check that the schedule can run (validate.h).
#include "braid/schedule/csv.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/schedule/unit_time.h"

namespace braid {
namespace {

// Calls use(piece) for what stands between separators; "a,,b" has three pieces.
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
    while (!table.empty() && (table.back() == '\n' || table.back() == '\r')) table.remove_suffix(1);
    if (table.empty()) throw ConfigError({{"table", "", "has no rows", ""}});
    schedule_.name = std::move(name);
    split(table, '\n', [&](std::string_view row) { read_row(row); });
    for (size_t stage = 0; stage < schedule_.stage_rank.size(); ++stage) {
      if (schedule_.stage_rank[stage] >= 0) continue;
      problems_.push_back({cat("stage ", stage), "", "is on no rank, though a later stage is", ""});
    }
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
    schedule_.num_stages = static_cast<int>(schedule_.stage_rank.size());
    return std::move(schedule_);
  }

 private:
  void read_row(std::string_view row) {
    schedule_.programs.emplace_back();
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
    try {
      const Action action = parse_action(cell);
      if (action.stage >= kMostStages) {
        problems_.push_back({place, std::string(cell), cat("has a stage beyond ", kMostStages - 1), ""});
        return;
      }
      place_stage(action.stage, place, cell);
      schedule_.num_microbatches = std::max(schedule_.num_microbatches, action.micro + 1);
      schedule_.programs.back().push_back(action);
    } catch (const ConfigError& error) {
      for (Problem problem : error.problems()) {
        problem.key = place;
        problems_.push_back(problem);
      }
    }
  }

  void place_stage(int stage, const std::string& place, std::string_view cell) {
    auto& owners = schedule_.stage_rank;
    if (stage >= static_cast<int>(owners.size())) owners.resize(stage + 1, -1);
    const int rank = static_cast<int>(schedule_.programs.size()) - 1;
    if (owners[stage] >= 0 && owners[stage] != rank) {
      const std::string rule = cat("puts stage ", stage, " on rank ", rank, ", but rank ", owners[stage], " has it");
      problems_.push_back({place, std::string(cell), rule, ""});
      return;
    }
    owners[stage] = rank;
  }

  static constexpr int kMostStages = 1 << 20;  // a typing slip must not ask for gigabytes

  Schedule schedule_;
  std::vector<Problem> problems_;
};

bool only_computes(const Schedule& schedule) {
  return std::all_of(schedule.programs.begin(), schedule.programs.end(), [](const Program& program) {
    return std::all_of(program.begin(), program.end(), [](const Action& action) { return computes(action.op); });
  });
}

}  // namespace

std::string to_csv(const Schedule& schedule) {
  const bool slots = only_computes(schedule);
  const Timeline timeline = slots ? unit_time(schedule) : Timeline{};
  std::string table;
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    std::string row;
    int column = 0;
    const auto put = [&](const Action& action, int at) {
      row.append(at - column, ',');
      row += text(action);
      column = at;
    };
    if (!slots) {
      const Program& program = schedule.programs[rank];
      for (size_t i = 0; i < program.size(); ++i) put(program[i], static_cast<int>(i));
    } else {
      for (const auto& span : timeline.ranks[rank]) put(span.action, static_cast<int>(span.begin));
    }
    table += row + "\n";
  }
  return table;
}

Schedule from_csv(std::string_view table, std::string name) { return Reader().read(table, std::move(name)); }

}  // namespace braid
