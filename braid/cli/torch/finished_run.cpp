// Timelines and the sample.
#include "braid/cli/torch/finished_run.h"

#include <iostream>

#include "braid/base/output_file.h"
#include "braid/base/text.h"
#include "braid/base/utf8.h"
#include "braid/base/word.h"
#include "braid/cli/terminal.h"
#include "braid/cli/torch/run_entries.h"
#include "braid/mesh/device_mesh.h"
#include "braid/report/chrome_trace.h"
#include "braid/report/timeline_svg.h"
#include "braid/schedule/simulate.h"
#include "braid/train/generate.h"
#include "braid/train/step_schedule.h"

namespace braid::cli {
namespace {

// Returns the rows of the pipeline that contains `rank`.
schedule::Timeline pipeline_of(const schedule::Timeline& all, const mesh::DeviceMesh& mesh, int rank) {
  schedule::Timeline rows;
  for (const int peer : mesh.peers(rank, {mesh::Axis::Pipe})) {
    rows.ranks.push_back(all.ranks[static_cast<size_t>(peer)]);
    const auto on_disk = all.disk_of(static_cast<size_t>(peer));
    rows.disk.emplace_back(on_disk.begin(), on_disk.end());
  }
  return rows;
}

// Writes a row for each disk transfer of the last step; no file if there was none.
void write_moves(const train::RunEnd& end) {
  std::string rows;
  for (size_t rank = 0; rank < end.timeline.disk.size(); ++rank) {
    for (const schedule::DiskTransfer& move : end.timeline.disk[rank]) {
      rows += cat(end.num_steps, ",", rank, ",", word(move.content), ",", word(move.direction), ",", move.bytes, ",",
                  fixed(move.begin, 6), ",", fixed(move.end, 6), "\n");
    }
  }
  if (rows.empty()) return;
  write_file(cat(end.spec.train.out, "/", kMovesName), "step,rank,content,direction,bytes,begin,end\n" + rows);
}

// Returns the rows of all ranks as if no rank had waited. The first pipeline of each replica is replayed without waits
// and stands for the replica's other pipelines, which run the same program.
schedule::Timeline without_waiting(const train::RunEnd& end, const mesh::DeviceMesh& mesh) {
  std::vector<schedule::Timeline> replicas;
  for (mesh::Coords first; first[mesh::Axis::Data] < mesh.size(mesh::Axis::Data); ++first[mesh::Axis::Data]) {
    schedule::Timeline measured = pipeline_of(end.timeline, mesh, mesh.rank(first));
    const bool was_lost = measured.ranks.front().empty();
    replicas.push_back(was_lost ? std::move(measured)
                                : schedule::replay(train::step_schedule(end.spec, first[mesh::Axis::Data]), measured));
  }
  schedule::Timeline all;
  for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
    const mesh::Coords at = mesh.coords(rank);
    all.ranks.push_back(
        replicas[static_cast<size_t>(at[mesh::Axis::Data])].ranks[static_cast<size_t>(at[mesh::Axis::Pipe])]);
  }
  return all;
}

}  // namespace

void show_end(const train::RunEnd& end, RunPrinter& printer) {
  const RunSpec& spec = end.spec;
  if (end.timeline.makespan() == 0) return printer.print_end(end, 0, 0);  // an earlier run had made all steps
  const mesh::DeviceMesh mesh(spec.mesh);
  const schedule::Timeline all = without_waiting(end, mesh);
  const schedule::Timeline measured = pipeline_of(end.timeline, mesh, 0), ideal = pipeline_of(all, mesh, 0);
  write_file(cat(spec.train.out, "/", kTimelineName), report::timeline_svg({{"measured", measured}, {"ideal", ideal}}));
  write_file(cat(spec.train.out, "/", kTraceName), report::chrome_trace({{"measured", end.timeline}, {"ideal", all}}));
  write_moves(end);
  printer.print_end(end, measured.bubble_fraction(), ideal.bubble_fraction());
}

void show_sample(const train::RunEnd& end) {
  const RunSpec& spec = end.spec;
  if (spec.train.sample_prompt.empty()) return;
  train::GenerateOptions options;
  options.prompt = spec.train.sample_prompt;
  options.num_tokens = spec.train.sample_tokens;
  options.seed = spec.train.seed;
  options.ranks = spec.run.ranks;
  const std::string text = whole_characters(options.prompt + train::generate(end.checkpoint, options, nullptr));
  write_file(cat(spec.train.out, "/", kSampleName), text + "\n");
  std::cout << "sample, also in " << shown_on_line(spec.train.out) << "/" << kSampleName << ":\n"
            << shown_on_stdout(text) << std::endl;
}

}  // namespace braid::cli
