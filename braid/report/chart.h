// Curves over the steps of a run as an HTML figure with an inline SVG that takes any width; its text keeps its size.
// Its colours are classes of page_style.h.
#pragma once

#include <string>
#include <vector>

#include "braid/report/chart_axis.h"

namespace braid::report {

enum class Stroke { Faint, Main, Second };
enum class Marks { None, Dots };

struct Curve {
  std::string name;  // in the legend
  Series points;
  Stroke stroke = Stroke::Main;
  Marks marks = Marks::None;
};

// A horizontal line that curves are held against.
struct Level {
  std::string name;
  double value = 0;
};

enum class Base { Data, Zero };         // where the value axis begins
enum class ChartWidth { Half, Whole };  // of the page's width

struct Chart {
  std::string title, unit;
  std::vector<Curve> curves;
  std::vector<Level> levels;
  std::vector<double> breaks;  // steps after which the run was started again
  Base base = Base::Data;
  ChartWidth width = ChartWidth::Half;
};

inline constexpr size_t kMostPoints = 2000;  // drawn of one curve

// Empty when no curve has a point. The value axis is logarithmic where all values are positive and most are squeezed
// into a small part of it otherwise. What a Faint curve does in its outermost half percents may leave the picture.
std::string chart_figure(const Chart& chart);

}  // namespace braid::report
