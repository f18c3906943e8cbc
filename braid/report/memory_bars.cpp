// Bars are boxes of HTML, so text keeps its size at every width.
#include "braid/report/memory_bars.h"

#include <algorithm>
#include <numeric>

#include "braid/base/text.h"
#include "braid/report/chart_axis.h"
#include "braid/report/markup.h"

namespace braid::report {
namespace {

constexpr double kTicks = 8;
constexpr double kThinnest = 0.0005;  // of the scale; less is left out

class Bars {
 public:
  explicit Bars(const MemoryBars& memory) : memory_(memory), num_ranks_(memory.totals.size()) {
    for (const auto& [name, bytes] : memory.categories) num_ranks_ = std::max(num_ranks_, bytes.size());
    for (size_t rank = 0; rank < num_ranks_; ++rank) scale_ = std::max(scale_, length(rank));
  }

  std::string text() const {
    if (scale_ == 0) return "";
    std::string all = "<div class=\"memory\">\n" + legend();
    for (const size_t rank : shown()) all += row(rank);
    all += axis() + "</div>\n";
    if (num_ranks_ <= kMostBars) return all;
    return all + cat("<p class=\"note\">The ", kMostBars, " ranks that use the most, of ", num_ranks_, ".</p>\n");
  }

 private:
  static double at(const std::vector<double>& bytes, size_t rank) { return rank < bytes.size() ? bytes[rank] : 0; }

  double sum(size_t rank) const {
    double bytes = 0;
    for (const auto& category : memory_.categories) bytes += at(category.second, rank);
    return bytes;
  }
  double length(size_t rank) const { return std::max(sum(rank), at(memory_.totals, rank)); }

  std::vector<size_t> shown() const {
    std::vector<size_t> ranks(num_ranks_);
    std::iota(ranks.begin(), ranks.end(), size_t{0});
    if (num_ranks_ <= kMostBars) return ranks;
    std::stable_sort(ranks.begin(), ranks.end(), [&](size_t a, size_t b) { return length(a) > length(b); });
    ranks.resize(kMostBars);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  std::string legend() const {
    std::string all = "<div class=\"legend\">";
    for (size_t i = 0; i < memory_.categories.size(); ++i) {
      all += cat("<span><i class=\"m", i, "\"></i>", escaped(memory_.categories[i].first), "</span>");
    }
    if (!memory_.totals.empty()) all += "<span><i class=\"most\"></i>most in use at once</span>";
    return all + "</div>\n";
  }

  std::string row(size_t rank) const {
    std::string all = cat("<div class=\"row\"><span class=\"who\">rank ", rank, "</span><div class=\"stack\">");
    for (size_t i = 0; i < memory_.categories.size(); ++i) {
      const auto& [name, bytes] = memory_.categories[i];
      if (at(bytes, rank) < kThinnest * scale_) continue;
      all += cat("<i class=\"m", i, "\" style=\"width:", percent(at(bytes, rank) / scale_), "\" title=\"",
                 escaped(name), " ", human_bytes(at(bytes, rank)), "\"></i>");
    }
    const double most = at(memory_.totals, rank);
    if (most > 0) all += cat("<b style=\"left:", percent(most / scale_), "\"></b>");
    return cat(all, "</div><span class=\"sum\">", human_bytes(most > 0 ? most : sum(rank)), "</span></div>\n");
  }

  std::string axis() const {
    double unit = 1;
    while (scale_ / unit >= 1024) unit *= 1024;
    const double step = round_step(scale_ / unit / kTicks) * unit;
    std::string all = "<div class=\"row\"><span class=\"who\"></span><div class=\"ticks\">";
    for (int i = 0; i * step <= scale_; ++i) {
      all +=
          cat("<span style=\"left:", percent(i * step / scale_), "\">", i == 0 ? "0" : tick(i * step, unit), "</span>");
    }
    return all + "</div><span class=\"sum\"></span></div>\n";
  }

  static std::string tick(double bytes, double unit) {
    const std::string name = human_bytes(unit);
    return coordinate(bytes / unit) + name.substr(name.find(' '));
  }

  const MemoryBars& memory_;
  size_t num_ranks_;
  double scale_ = 0;
};

}  // namespace

std::string memory_bars(const MemoryBars& memory) { return Bars(memory).text(); }

}  // namespace braid::report
