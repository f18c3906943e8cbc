// Draws spans as rows of characters.
#include "braid/schedule/grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "braid/base/text.h"
#include "braid/schedule/timeline.h"

namespace braid::schedule {
namespace {

// The drawing of one span, or of a fused pair, in columns [begin, end).
struct Block {
  int64_t begin;
  int64_t end;
  Action action;
  std::optional<Action> partner = {};  // the second action of a fused pair
};
using Row = std::vector<Block>;

// A range of columns. The stretches of a grid are drawn one below another.
struct Stretch {
  int64_t from, to;
};

constexpr double kMostSlots = 1 << 30;  // limits the number of columns, whatever the times are

const char* colour(const Block& block) {
  if (block.partner) return "\x1b[38;5;231;48;5;97m";  // white on violet
  switch (block.action.op) {
    case Op::Forward:
      return "\x1b[38;5;231;48;5;26m";  // white on blue
    case Op::FullBackward:
      return "\x1b[38;5;231;48;5;29m";  // white on green
    case Op::InputGrad:
      return "\x1b[38;5;16;48;5;79m";  // black on light green
    case Op::Recompute:
      return "\x1b[38;5;16;48;5;110m";  // black on light blue
    case Op::Update:
      return "\x1b[38;5;231;48;5;240m";  // white on grey
    default:
      return "\x1b[38;5;16;48;5;179m";  // black on ochre
  }
}

// Returns true for F, B, I and W. Returns true for recompute and update only if they take time.
bool is_drawn(const Span& span) {
  return span.action.op <= Op::WeightGrad || (computes(span.action.op) && span.end > span.begin);
}

class Grid {
 public:
  Grid(const Timeline& timeline, const GridStyle& style) : timeline_(timeline), style_(style) {
    measure();
    const int ranks = static_cast<int>(timeline.ranks.size());
    prefix_ = static_cast<int>(cat("rank ", std::max(0, ranks - 1), "  ").size());
    for (const auto& spans : timeline_.ranks) {
      columns_ = std::max(columns_, place(spans, [](const Block&) {}));
    }
    last_round_ = columns_;
    for (const auto& spans : timeline_.ranks) find_rounds(spans);
  }

  double size() const {
    const auto lines = static_cast<double>(timeline_.ranks.size()), width = static_cast<double>(style_.width);
    const double line = prefix_ + static_cast<double>(columns_) * cell_;
    return (style_.height > 0 ? std::min<double>(style_.height, lines) : lines) *
           (width > 0 ? std::min(width * std::max(1, style_.stretches), line) : line);
  }

  std::string text() const {
    std::string all;
    int64_t drawn = 0;
    for (const Stretch& stretch : stretches()) {
      if (stretch.from > 0) all += stretch.from > drawn ? "...\n" : "\n";
      all += lines(stretch);
      drawn = stretch.to;
    }
    return all;
  }

 private:
  int64_t room() const {
    return style_.width > 0 ? std::max<int64_t>(1, (int64_t{style_.width} + 1 - prefix_) / cell_) : columns_;
  }

  std::vector<Stretch> stretches() const {
    if (columns_ <= room() || style_.stretches < 2) return {{0, columns_}};
    const auto needed = [&](int64_t columns) { return std::max<int64_t>(1, (columns + room() - 1) / room()); };
    int64_t head = needed(first_round_), tail = needed(columns_ - last_round_);
    if (head + tail > style_.stretches) {
      head = std::clamp<int64_t>(style_.stretches - tail, (style_.stretches + 1) / 2, head);
      tail = style_.stretches - head;
    }
    std::vector<Stretch> all;
    const int64_t end_of_head = std::min(columns_, head * room());
    for (int64_t at = 0; at < end_of_head; at += room()) all.push_back({at, std::min(columns_, at + room())});
    for (int64_t at = std::max(end_of_head, columns_ - tail * room()); at < columns_; at += room()) {
      all.push_back({at, std::min(columns_, at + room())});
    }
    return all;
  }

  void find_rounds(const std::vector<Span>& spans) {
    int64_t first_end = 0, last_begin = columns_;
    place(spans, [&](const Block& block) {
      const Op op = block.action.op;
      const bool goes_back = op == Op::FullBackward || op == Op::InputGrad || block.partner;
      if (goes_back && first_end == 0) first_end = block.end;
      if (op == Op::Forward || block.partner) last_begin = block.begin;
    });
    first_round_ = std::max(first_round_, first_end);
    last_round_ = std::min(last_round_, last_begin);
  }

  std::string lines(const Stretch& stretch) const {
    const int ranks = static_cast<int>(timeline_.ranks.size());
    const bool elided = style_.height > 0 && ranks > style_.height;
    const int kept = elided ? std::max(1, style_.height - 1) : ranks;
    const int tail = elided ? kept / 2 : 0;
    std::string all;
    for (int rank = 0; rank < kept - tail; ++rank) all += line(rank, stretch) + "\n";
    if (elided) all += "...\n";
    for (int rank = ranks - tail; rank < ranks; ++rank) all += line(rank, stretch) + "\n";
    return all;
  }

  void measure() {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    double shortest = kNever;
    double shortest_pair = kNever;
    double last = 0;  // end of the last span that is drawn
    Action widest{Op::Forward, 0, -1};
    origin_ = kNever;
    for (const auto& spans : timeline_.ranks) {
      int stage = -1;
      for (size_t i = 0; i < spans.size(); ++i) {
        const Span& span = spans[i];
        if (!is_drawn(span)) continue;
        const double length = span.end - span.begin;
        origin_ = std::min(origin_, span.begin);
        last = std::max(last, span.end);
        if (length > 0 && span.action.op <= Op::WeightGrad) shortest = std::min(shortest, length);
        if (second_of_pair(spans, i)) shortest_pair = std::min(shortest_pair, length);
        widest.stage = std::max(widest.stage, span.action.stage);
        widest.micro = std::max(widest.micro, span.action.micro);
        several_stages_ |= stage >= 0 && stage != span.action.stage;
        stage = span.action.stage;
      }
    }
    slot_ = style_.slot > 0 ? style_.slot : std::isfinite(shortest) ? shortest : 1;
    slot_ = std::max(slot_, (last - origin_) / kMostSlots);
    cell_ = widest.micro < 0 ? 2 : static_cast<int>(label({0, 1, widest}).size()) + 1;
    if (!std::isfinite(shortest_pair)) return;
    const int columns = static_cast<int>(std::max<int64_t>(1, std::llround(shortest_pair / slot_)));
    const int width = static_cast<int>(label({0, 1, widest, widest}).size()) + 1;
    cell_ = std::max(cell_, (width + columns - 1) / columns);
  }

  std::string label(const Block& block) const {
    return block.partner ? label(block.action) + "&" + label(*block.partner) : label(block.action);
  }

  std::string label(const Action& action) const {
    const std::string op = action.op == Op::Recompute ? "R" : action.op == Op::Update ? "U" : braid::text(action.op);
    return (several_stages_ ? std::to_string(action.stage) : "") + op + std::to_string(action.micro);
  }

  // Calls use(block) for each span of a row. Rounds to whole columns and moves overlapping blocks to the right, so that
  // every span is visible. Returns the column where the row ends.
  template <class Use>
  int64_t place(const std::vector<Span>& spans, const Use& use) const {
    int64_t free = 0;
    for (size_t i = 0; i < spans.size(); ++i) {
      const Span& span = spans[i];
      if (!is_drawn(span) || second_of_pair(spans, i)) continue;
      const int64_t begin = std::max<int64_t>(free, std::llround((span.begin - origin_) / slot_));
      free = std::max<int64_t>(begin + 1, std::llround((span.end - origin_) / slot_));
      Block block{begin, free, span.action};
      if (i + 1 < spans.size() && second_of_pair(spans, i + 1)) block.partner = spans[i + 1].action;
      use(block);
    }
    return free;
  }

  std::string line(int rank, const Stretch& stretch) const {
    std::string number = std::to_string(rank);
    std::string text = cat("rank ", std::string(prefix_ - 7 - number.size(), ' '), number, "  ");
    Row row;
    place(timeline_.ranks[rank], [&](const Block& block) { row.push_back(block); });
    if (room() >= stretch.to - stretch.from) {
      draw(row, stretch.from, stretch.to, text, stretch.to < columns_ ? Ending::Fill : Ending::Open);
    } else {
      const int64_t kept = std::max<int64_t>(1, room() - (cell_ < 4 ? 2 : 1));  // "..." takes one or two cells
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
      draw_block(*block, at - begin, text);
    }
    if (ending == Ending::Fill) draw_idle(to - at, text);
  }

  void draw_idle(int64_t columns, std::string& text) const {
    for (int64_t i = 0; i < columns; ++i) {
      text += style_.ink == Color::Ansi ? "\x1b[38;5;244m.\x1b[0m" : ".";
      text.append(cell_ - 1, ' ');
    }
  }

  void draw_block(const Block& block, int64_t columns, std::string& text) const {
    std::string box = label(block);
    box.resize(columns * cell_ - 1, columns > 1 && style_.ink == Color::Plain ? '-' : ' ');
    text += style_.ink == Color::Ansi ? cat(colour(block), box, "\x1b[0m ") : box + " ";
  }

  const Timeline& timeline_;
  const GridStyle style_;
  double origin_ = 0;
  double slot_ = 1;
  bool several_stages_ = false;
  int cell_ = 2;  // characters per column, with the gap
  int prefix_ = 0;
  int64_t columns_ = 0;
  int64_t first_round_ = 0;  // column at which every rank has ended its first backward
  int64_t last_round_ = 0;   // column at which the first rank begins its last forward
};

}  // namespace

std::string grid(const Timeline& timeline, const GridStyle& style) { return Grid(timeline, style).text(); }

double grid_size(const Timeline& timeline, const GridStyle& style) { return Grid(timeline, style).size(); }

std::string grid(const Schedule& schedule, const GridStyle& style) { return grid(unit_time(schedule), style); }

}  // namespace braid::schedule
