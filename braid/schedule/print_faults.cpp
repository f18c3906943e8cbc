// Draws programs with their faulty cells marked. validate.cpp finds the faults.
#include <algorithm>
#include <set>

#include "braid/base/text.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/validate.h"

namespace braid::schedule {
namespace {

constexpr int kNeighbours = 4;  // cells shown on each side of a faulty one

// Returns a line such as "rank 1  .. 1F2 1B1 >1SEND_B1< 1F3 .."; a fused pair is one cell.
std::string line(const Program& program, int rank, const std::set<int>& marked) {
  std::vector<int> cells;   // index at which each cell begins
  std::vector<int> faulty;  // numbers of the faulty cells, ascending
  for (int i = 0; i < static_cast<int>(program.size()); ++i) {
    if (!pair_ends(program, i)) cells.push_back(i);
    const int cell = static_cast<int>(cells.size()) - 1;
    if (marked.contains(i) && (faulty.empty() || faulty.back() != cell)) faulty.push_back(cell);
  }
  std::string words = cat("rank ", rank, " ");
  int shown = -1;
  for (int cell = 0; cell < static_cast<int>(cells.size()); ++cell) {
    const auto near = std::lower_bound(faulty.begin(), faulty.end(), cell - kNeighbours);
    if (near == faulty.end() || *near > cell + kNeighbours) continue;
    if (cell > shown + 1) words += " ..";
    shown = cell;
    const bool mark = std::binary_search(faulty.begin(), faulty.end(), cell);
    const std::string word = word_at(program, cells[cell]);
    words += mark ? cat(" >", word, "<") : cat(" ", word);
  }
  return words + (shown < static_cast<int>(cells.size()) - 1 ? " ..\n" : "\n");
}

}  // namespace

std::string print(const Schedule& schedule, const std::vector<Fault>& faults) {
  std::string picture;
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    std::set<int> marked;
    for (const auto& fault : faults) {
      if (fault.rank == rank && fault.position >= 0) marked.insert(fault.position);
    }
    if (!marked.empty()) picture += line(schedule.programs[rank], rank, marked);
  }
  for (const auto& fault : faults) {
    if (fault.rank >= 0) picture += cat("rank ", fault.rank, ": ");
    picture += fault.text + "\n";
  }
  return picture;
}

}  // namespace braid::schedule
