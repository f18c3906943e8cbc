// Spans to rows of characters. It knows nothing of costs, terminals or files.
#include "braid/schedule/grid.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/base/text.h"
#include "braid/schedule/unit_time.h"

namespace braid {
namespace {

// A compute span in columns, [begin, end).
struct Block {
  int64_t begin;
  int64_t end;
  Action action;
};
using Row = std::vector<Block>;

const char* colour(Op op) {
  switch (op) {
    case Op::Forward:
      return "\x1b[38;5;231;48;5;26m";  // white on blue
    case Op::FullBackward:
      return "\x1b[38;5;231;48;5;29m";  // white on green
    case Op::InputGrad:
      return "\x1b[38;5;16;48;5;79m";  // black on light green
    default:
      return "\x1b[38;5;16;48;5;179m";  // black on ochre
  }
}

class Grid {
 public:
  Grid(const Timeline& timeline, const GridStyle& style) : timeline_(timeline), style_(style) {
    measure();
    const int ranks = static_cast<int>(timeline.ranks.size());
    prefix_ = static_cast<int>(cat("rank ", std::max(0, ranks - 1), "  ").size());
  }

  std::string text() {
    for (const auto& spans : timeline_.ranks) {
      columns_ = std::max(columns_, place(spans, [](const Block&) {}));
    }
    std::string all;
    for (size_t rank = 0; rank < timeline_.ranks.size(); ++rank) all += line(static_cast<int>(rank)) + "\n";
    return all;
  }

 private:
  void measure() {
    double shortest = std::numeric_limits<double>::infinity();
    origin_ = shortest;
    int most_stage = 0;
    int most_micro = -1;
    for (const auto& spans : timeline_.ranks) {
      int stage = -1;
      for (const auto& span : spans) {
        if (!computes(span.action.op)) continue;
        origin_ = std::min(origin_, span.begin);
        if (span.end > span.begin) shortest = std::min(shortest, span.end - span.begin);
        most_stage = std::max(most_stage, span.action.stage);
        most_micro = std::max(most_micro, span.action.micro);
        several_stages_ |= stage >= 0 && stage != span.action.stage;
        stage = span.action.stage;
      }
    }
    slot_ = style_.slot > 0 ? style_.slot : std::isfinite(shortest) ? shortest : 1;
    cell_ = most_micro < 0 ? 2 : static_cast<int>(label({Op::Forward, most_stage, most_micro}).size()) + 1;
  }

  std::string label(const Action& action) const {
    return several_stages_ ? braid::text(action) : braid::text(action.op) + std::to_string(action.micro);
  }

  // Rounds to whole columns and pushes right what would overlap, so every span is seen. Returns where the row ends.
  template <class Use>
  int64_t place(const std::vector<Span>& spans, const Use& use) const {
    int64_t free = 0;
    for (const auto& span : spans) {
      if (!computes(span.action.op)) continue;
      const int64_t begin = std::max<int64_t>(free, std::llround((span.begin - origin_) / slot_));
      free = std::max<int64_t>(begin + 1, std::llround((span.end - origin_) / slot_));
      use(Block{begin, free, span.action});
    }
    return free;
  }

  std::string line(int rank) const {
    std::string number = std::to_string(rank);
    std::string text = cat("rank ", std::string(prefix_ - 7 - number.size(), ' '), number, "  ");
    Row row;
    place(timeline_.ranks[rank], [&](const Block& block) { row.push_back(block); });
    const int64_t room = style_.width > 0 ? std::max(1, (style_.width + 1 - prefix_) / cell_) : columns_;
    if (room >= columns_) {
      draw(row, 0, columns_, text);
    } else {
      const int64_t kept = std::max<int64_t>(1, room - (cell_ < 4 ? 2 : 1));  // "..." takes one or two cells
      const int64_t tail = kept / 2;
      draw(row, 0, kept - tail, text, Ending::Fill);
      text += "... ";
      draw(row, columns_ - tail, columns_, text);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

  enum class Ending { Open, Fill };  // whether idle columns after the last block are drawn

  void draw(const Row& row, int64_t from, int64_t to, std::string& text, Ending ending = Ending::Open) const {
    int64_t at = from;
    auto block = std::partition_point(row.begin(), row.end(), [&](const Block& b) { return b.end <= from; });
    for (; block != row.end() && block->begin < to; ++block) {
      draw_idle(block->begin - at, text);
      const int64_t begin = std::max(block->begin, from);
      at = std::min(block->end, to);
      draw_block(block->action, at - begin, text);
    }
    if (ending == Ending::Fill) draw_idle(to - at, text);
  }

  void draw_idle(int64_t columns, std::string& text) const {
    for (int64_t i = 0; i < columns; ++i) {
      text += style_.ink == Ink::Ansi ? "\x1b[38;5;244m.\x1b[0m" : ".";
      text.append(cell_ - 1, ' ');
    }
  }

  void draw_block(const Action& action, int64_t columns, std::string& text) const {
    std::string box = label(action);
    box.resize(columns * cell_ - 1, columns > 1 && style_.ink == Ink::Plain ? '-' : ' ');
    text += style_.ink == Ink::Ansi ? cat(colour(action.op), box, "\x1b[0m ") : box + " ";
  }

  const Timeline& timeline_;
  const GridStyle style_;
  double origin_ = 0;
  double slot_ = 1;
  bool several_stages_ = false;
  int cell_ = 2;  // characters per column, with the gap
  int prefix_ = 0;
  int64_t columns_ = 0;
};

}  // namespace

std::string grid(const Timeline& timeline, const GridStyle& style) { return Grid(timeline, style).text(); }

std::string grid(const Schedule& schedule, const GridStyle& style) { return grid(unit_time(schedule), style); }

}  // namespace braid
