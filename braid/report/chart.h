// Curves over the steps of a run, as an HTML figure with an inline SVG that fills any width while its text keeps its
// size. Colours are classes of page_style.h.
#pragma once

#include <string>
#include <vector>

#include "braid/report/chart_axis.h"

namespace braid::report {

enum class Stroke { Faint, Main, Second };
enum class Marks { None, Dots };

struct Curve {
  std::string name;  // name in the legend
  Series points;
  Stroke stroke = Stroke::Main;
  Marks marks = Marks::None;
};

// A horizontal line for comparison with the curves.
struct Level {
  std::string name;
  double value = 0;
};

enum class Base { Data, Zero };         // the start of the value axis
enum class ChartWidth { Half, Whole };  // fraction of the page's width

struct Chart {
  std::string title, unit;
  std::vector<Curve> curves;
  std::vector<Level> levels;
  std::vector<double> breaks;  // steps after which the run was restarted
  Base base = Base::Data;
  ChartWidth width = ChartWidth::Half;
};

inline constexpr size_t kMostPoints = 2000;  // most points drawn of one curve

// Returns the figure, empty if no curve has a point. The value axis is logarithmic if all values are positive and a
// linear axis would squeeze most of them into a small part of it. The axis ignores the lowest and the highest half
// percent of a Faint curve's values, which may lie outside the picture.
std::string chart_figure(const Chart& chart);

}  // namespace braid::report
