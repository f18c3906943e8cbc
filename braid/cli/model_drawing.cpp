// Draws a model as DOT and as SVG.
#include "braid/cli/model_drawing.h"

#include <algorithm>

#include "braid/base/text.h"
#include "braid/report/markup.h"
#include "braid/spec/context_rules.h"
#include "braid/spec/masking.h"
#include "braid/spec/trained.h"

namespace braid::cli {
namespace {

using report::coordinate, report::escaped;

constexpr double kColumn = 380, kBox = 330;  // widths of a column and of its boxes
constexpr double kRow = 34, kHeight = 24;    // heights of a row and of a box
constexpr double kArcs = 30, kTitle = 30;    // room beside the boxes and above them

std::string title_of(const layout::ListedOp& op) { return op.count > 1 ? cat(op.count, " layers") : op.block; }

// "attention.qkv" for its weight.
std::string param_text(const layout::ListedOp& op) {
  if (op.parameters.empty()) return "";
  return op.parameters[0].substr(0, op.parameters[0].rfind('.'));
}

// The places of boxes: a column for each block.
struct Place {
  double x, y;
};

std::vector<Place> places_of(const layout::Listing& listing) {
  std::vector<Place> places;
  Place next{kArcs - kColumn, 0};
  for (size_t op = 0; op < listing.ops.size(); ++op) {
    if (op == 0 || listing.ops[op].block != listing.ops[op - 1].block) next = {next.x + kColumn, kTitle};
    places.push_back(next);
    next.y += kRow;
  }
  return places;
}

// Returns the line from an op's box to that of a reader: to the next box, or an arc on the left side.
std::string line_of(const Place& from, const Place& to) {
  const double middle = from.x + kBox / 2;
  if (to.y == from.y + kRow) {
    return cat("<path d=\"M", coordinate(middle), " ", coordinate(from.y + kHeight), "v", coordinate(kRow - kHeight),
               "\"/>\n");
  }
  const double y = from.y + kHeight / 2, end = to.y + kHeight / 2, x = from.x - kArcs + 6;
  return cat("<path d=\"M", coordinate(from.x), " ", coordinate(y), "C", coordinate(x), " ", coordinate(y), " ",
             coordinate(x), " ", coordinate(end), " ", coordinate(to.x), " ", coordinate(end), "\"/>\n");
}

std::string box_of(const layout::ListedOp& op, const Place& at) {
  const std::string y = coordinate(at.y + kHeight - 7);
  return cat("<g><title>", escaped(op.rule), "</title><rect x=\"", coordinate(at.x), "\" y=\"", coordinate(at.y),
             "\" width=\"", kBox, "\" height=\"", kHeight, "\" rx=\"5\"/><text class=\"kind\" x=\"",
             coordinate(at.x + 8), "\" y=\"", y, "\">", escaped(op.kind), "</text><text x=\"", coordinate(at.x + 88),
             "\" y=\"", y, "\">", escaped(param_text(op)), "</text><text class=\"shape\" x=\"",
             coordinate(at.x + kBox - 8), "\" y=\"", y, "\">", shape_text(op), "</text></g>\n");
}

}  // namespace

layout::Listing listing_of(const RunSpec& run) {
  const double tokens = static_cast<double>(run.train.microbatch) * run.model.context / run.mesh.context;
  const auto between = layout::sequence_of(run.mesh);
  return layout::listing_of(
      run.model, spec::trained_graph(run),
      {tokens, run.mesh.tensor, run.mesh.expert, between, static_cast<double>(run.train.microbatch), run.mesh.context,
       spec::exchange_ranks(run), run.mesh.context_parallel, layout::sums_of(run.train)},
      spec::picked_fraction(run));
}

std::string parameters_text(const layout::ListedOp& op, const std::string& between) {
  std::vector<std::string> names;
  for (const std::string& name : op.parameters) {
    names.push_back(name + (std::ranges::find(op.frozen, name) == op.frozen.end() ? "" : " (frozen)"));
  }
  return joined(names, between);
}

std::string shape_text(const layout::ListedOp& op) {
  std::vector<std::string> extents;
  for (const int64_t extent : op.shape) extents.push_back(cat(extent));
  return cat("[", joined(extents), "]");
}

std::string model_dot(const layout::Listing& listing) {
  std::string text = "digraph model {\n  node [shape=box]\n", edges;
  const std::string* block = nullptr;
  for (size_t number = 0; number < listing.ops.size(); ++number) {
    const layout::ListedOp& op = listing.ops[number];
    if (!block || *block != op.block) {
      text += cat(block ? "  }\n" : "", "  subgraph \"cluster ", op.block, "\" {\n    label=\"", title_of(op), "\"\n");
    }
    block = &op.block;
    text += cat("    ", number, " [label=\"", op.kind, "\\n", parameters_text(op, "\\n"),
                op.parameters.empty() ? "" : "\\n", shape_text(op), "\"]\n");
    for (const size_t maker : op.reads) edges += cat("  ", maker, " -> ", number, "\n");
  }
  return cat(text, "  }\n", edges, "}\n");
}

std::string model_svg(const layout::Listing& listing) {
  const std::vector<Place> places = places_of(listing);
  std::string titles, lines, boxes;
  for (size_t number = 0; number < listing.ops.size(); ++number) {
    const layout::ListedOp& op = listing.ops[number];
    const Place& at = places[number];
    if (at.y == kTitle) {
      titles += cat("<text class=\"kind\" x=\"", coordinate(at.x), "\" y=\"18\">", title_of(op), "</text>\n");
    }
    for (const size_t maker : op.reads) {
      const bool is_inside = listing.ops[maker].block == op.block;
      lines += line_of(is_inside ? places[maker] : Place{at.x, kTitle - kRow}, at);
    }
    boxes += box_of(op, at);
  }
  const double height = std::ranges::max_element(places, {}, &Place::y)->y + kRow;
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"model\" viewBox=\"0 0 ", coordinate(3 * kColumn), " ",
             coordinate(height),
             "\" role=\"img\" aria-label=\"The ops of the model\">\n<style>.model rect,.model path"
             "{fill:none;stroke:currentColor;stroke-opacity:.45}.model text{font:12px system-ui,sans-serif;"
             "fill:currentColor}.model .kind{font-weight:600}.model .shape{text-anchor:end;opacity:.65}</style>\n",
             titles, lines, boxes, "</svg>");
}

}  // namespace braid::cli
