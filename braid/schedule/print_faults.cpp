// Draws programs with their faulty cells marked. It does not judge (validate.cpp).
#include <set>

#include "braid/base/text.h"
#include "braid/schedule/validate.h"

namespace braid {
namespace {

constexpr int kNeighbours = 4;  // cells shown on each side of a faulty one

// "rank 1  .. 1F2 1B1 >1SEND_B1< 1F3 .."
std::string line(const Program& program, int rank, const std::set<int>& marked) {
  std::string text_line = cat("rank ", rank, " ");
  int shown = -1;
  const int size = static_cast<int>(program.size());
  for (int i = 0; i < size; ++i) {
    const auto near = marked.lower_bound(i - kNeighbours);
    if (near == marked.end() || *near > i + kNeighbours) continue;
    if (i > shown + 1) text_line += " ..";
    shown = i;
    text_line += marked.contains(i) ? cat(" >", text(program[i]), "<") : cat(" ", text(program[i]));
  }
  return text_line + (shown < size - 1 ? " ..\n" : "\n");
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

}  // namespace braid
