// The partition of a model's blocks into pipeline stages.
#include "braid/spec/partition.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string_view>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/model/shape.h"

namespace braid::spec {
namespace {

constexpr std::string_view kFile = "file:";

}  // namespace

const ScheduleTraits* traits_of(const PipelineSpec& spec) { return find_schedule(spec.schedule); }

std::string schedule_file(const PipelineSpec& spec) {
  return spec.schedule.starts_with(kFile) ? spec.schedule.substr(kFile.size()) : "";
}

int chunks_per_rank(const PipelineSpec& spec) {
  const ScheduleTraits* traits = traits_of(spec);
  return traits ? chunks_of(*traits, {.chunks = spec.chunks}) : spec.chunks;
}

int num_stages(const RunSpec& spec) { return spec.mesh.pipe * chunks_per_rank(spec.pipeline); }

namespace {

std::string list_text(const std::vector<double>& blocks) {
  std::vector<std::string> parts;
  for (const double count : blocks) parts.push_back(exact(count));
  return joined(parts, ",");
}

std::vector<double> even_blocks(int layers, int num_stages) {
  check(num_stages >= 1 && layers >= num_stages, "every stage has a block to hold");
  std::vector<double> held(num_stages, layers / num_stages);
  const int remainder = layers % num_stages;
  // The remaining blocks go to stages 1, 2, ... num_stages - 2, then to stage 0.
  for (int i = 0; i < remainder; ++i) ++held[i + 1 < num_stages - 1 ? i + 1 : 0];
  return held;
}

}  // namespace

std::optional<std::vector<double>> partition_list(const std::string& text) {
  std::vector<double> blocks;
  std::istringstream words(text + ",");
  for (std::string word; std::getline(words, word, ',');) {
    char* end = nullptr;
    const double count = std::strtod(word.c_str(), &end);
    const bool number = end != word.c_str() && std::string(end).find_first_not_of(" \t") == std::string::npos;
    if (!number || !std::isfinite(count)) return {};
    blocks.push_back(count);
  }
  return blocks;
}

std::string even_partition(int layers, int num_stages) { return list_text(even_blocks(layers, num_stages)); }

std::optional<std::vector<int>> known_stage_units(const RunSpec& spec, int num_stages) {
  const int layers = spec.model.layers, parts = model::parts_of_layer(spec.model);
  if (num_stages < 1 || (is_even(spec.pipeline) && num_stages > layers)) return {};
  const std::optional<std::vector<double>> blocks =
      is_even(spec.pipeline) ? even_blocks(layers, num_stages) : partition_list(spec.pipeline.partition);
  if (!blocks || static_cast<int>(blocks->size()) != num_stages) return {};
  std::vector<int> first_unit{0};
  double before = 0;
  for (int stage = 0; stage + 1 < num_stages; ++stage) {
    before += (*blocks)[stage];
    if (before < 0 || before > layers) return {};
    first_unit.push_back(1 + static_cast<int>(std::lround(parts * before)));
  }
  first_unit.push_back(model::num_units(spec.model));
  const auto empty = std::adjacent_find(first_unit.begin(), first_unit.end(), std::greater_equal<>());
  if (empty != first_unit.end()) return {};
  return first_unit;
}

std::vector<int> stage_units(const RunSpec& spec, int num_stages) {
  auto units = known_stage_units(spec, num_stages);
  check(units.has_value(), "the partition is known, with an entry per stage, and every stage holds something");
  return std::move(*units);
}

std::string partition_text(const ModelSpec& model, const std::vector<int>& first_unit) {
  std::vector<double> blocks;
  const int last = first_unit.back() - 1;  // index of the head
  const double parts = model::parts_of_layer(model);
  for (size_t stage = 0; stage + 1 < first_unit.size(); ++stage) {
    blocks.push_back((std::min(first_unit[stage + 1], last) - std::max(first_unit[stage], 1)) / parts);
  }
  return list_text(blocks);
}

}  // namespace braid::spec
