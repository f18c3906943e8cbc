// The table of schedules as a configuration sees them.
#include "braid/spec/schedule_kind.h"

#include <algorithm>

namespace braid {
namespace {

constexpr int kChosen = 0;
constexpr int kDefaultChunks = 2;
constexpr std::string_view kFile = "file:";

}  // namespace

const std::vector<ScheduleKind>& schedule_kinds() {
  using enum UpdateRule;
  static const std::vector<ScheduleKind> kinds = {
      {"naive"},
      {"gpipe"},
      {"1f1b"},
      {"interleaved", kChosen},
      {"looped-bfs", kChosen},
      {"zb-h1"},
      {"zb-h2"},
      {"interleaved-zb", kChosen},
      {"zb-v", 2},
      {"dualpipev", 2},
      {"dualpipe"},
      {"zb-1p"},
      {"zb-2p"},
      {"v-half", 2},
      {"v-min", 2},
      {"pipedream", 1, Asynchronous},
      {"pipedream-2bw", 1, Asynchronous},
  };
  return kinds;
}

std::vector<std::string> schedule_kind_names() {
  std::vector<std::string> names;
  for (const ScheduleKind& kind : schedule_kinds()) names.push_back(kind.name);
  return names;
}

const ScheduleKind* schedule_kind(const std::string& name) {
  const auto& kinds = schedule_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

std::string schedule_file(const PipelineSpec& spec) {
  return spec.schedule.starts_with(kFile) ? spec.schedule.substr(kFile.size()) : "";
}

int chunks_per_rank(const PipelineSpec& spec) {
  const ScheduleKind* kind = schedule_kind(spec.schedule);
  if (kind && kind->chunks != kChosen) return kind->chunks;
  if (spec.chunks > 0) return spec.chunks;
  return kind ? kDefaultChunks : 0;
}

int num_stages(const RunSpec& spec) { return spec.mesh.pipe * chunks_per_rank(spec.pipeline); }

}  // namespace braid
