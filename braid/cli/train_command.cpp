// braid train: a run from a configuration file to weights, metrics, timeline and sample.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/output_file.h"
#include "braid/cli/run_printer.h"
#include "braid/cli/terminal.h"
#include "braid/mesh/device_mesh.h"
#include "braid/report/chrome_trace.h"
#include "braid/report/timeline_svg.h"
#include "braid/sim/measured_cost.h"
#include "braid/sim/simulate.h"
#include "braid/spec/describe.h"
#include "braid/spec/fields.h"
#include "braid/spec/parse.h"
#include "braid/train/generate.h"
#include "braid/train/run.h"
#include "braid/train/step_schedule.h"

namespace braid {
namespace {

constexpr int kInterruptedCode = 130;  // 128 + SIGINT, as shells say it

// A signal handler can reach nothing else, and every rank's thread asks.
std::atomic<int> interrupted = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void on_interrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);  // a second Ctrl-C ends at once
}

// Makes the run's folder before anything is computed, so that a wrong path costs nothing.
void make_folder(const RunSpec& spec) {
  std::error_code failure;
  std::filesystem::create_directories(spec.train.out, failure);
  if (failure) {
    throw ConfigError(
        {{"train.out", toml_text(spec.train.out), "must be a folder that can be made: " + failure.message(), ""}});
  }
}

// The rows of the pipeline that contains rank 0.
Timeline first_pipeline(const Timeline& all, const MeshSpec& mesh) {
  Timeline rows;
  for (const int rank : DeviceMesh(mesh).peers(0, {Axis::Pipe})) {
    rows.ranks.push_back(all.ranks[static_cast<size_t>(rank)]);
  }
  return rows;
}

// The rows of one pipeline for every rank: all pipelines run the same program.
Timeline every_pipeline(const Timeline& rows, const MeshSpec& mesh) {
  const DeviceMesh ranks(mesh);
  Timeline all;
  for (int rank = 0; rank < ranks.num_ranks(); ++rank) {
    all.ranks.push_back(rows.ranks[static_cast<size_t>(ranks.coords(rank)[Axis::Pipe])]);
  }
  return all;
}

// Draws the measured timeline above the ideal one, writes both with every rank's spans, and prints the closing lines.
void show_end(const RunEnd& end, const RunSpec& spec, RunPrinter& printer) {
  const Timeline measured = first_pipeline(end.timeline, spec.mesh);
  MeasuredCost measured_cost;
  measured_cost.add(measured);
  const Timeline ideal = simulate(end.schedule, measured_cost.cost(end.schedule.num_stages));
  write_file(spec.train.out + "/timeline.svg", timeline_svg({{"measured", measured}, {"ideal", ideal}}));
  write_file(spec.train.out + "/trace.json",
             chrome_trace({{"measured", end.timeline}, {"ideal", every_pipeline(ideal, spec.mesh)}}));
  printer.print_end(end, measured.bubble_fraction(), ideal.bubble_fraction());
}

void show_sample(const RunEnd& end, const RunSpec& spec) {
  if (spec.train.sample_prompt.empty()) return;
  GenerateOptions options;
  options.prompt = spec.train.sample_prompt;
  options.num_tokens = spec.train.sample_tokens;
  options.seed = spec.train.seed;
  const std::string text = options.prompt + generate(end.checkpoint, options, nullptr);
  write_file(spec.train.out + "/sample.txt", text + "\n");
  std::cout << "sample, also in " << spec.train.out << "/sample.txt:\n" << text << std::endl;
}

}  // namespace

int train_command(const Words& words) {
  CLI::App app("Trains a language model. Words after the file override its keys: train.steps=50 mesh.data=2",
               "braid train");
  std::string path;
  std::vector<std::string> overrides;
  app.add_option("FILE", path, "the run as TOML")->required();
  app.add_option("KEY=VALUE", overrides, "overrides");
  app.footer("\n" + config_text());
  if (const auto code = parse_words(app, words)) return *code;

  const RunSpec spec = read_run(path, overrides, host_limits());
  refuse_faulty_schedule(spec);  // before anything is written
  make_folder(spec);
  std::signal(SIGINT, on_interrupt);
  RunPrinter printer(std::cout, stdout_is_terminal() ? Terminal::Interactive : Terminal::Plain);
  const RunEnd end = run_training(spec, printer, [] { return interrupted != 0; });
  show_end(end, spec, printer);
  std::signal(SIGINT, SIG_DFL);
  if (end.interrupted) return kInterruptedCode;
  show_sample(end, spec);
  return 0;
}

}  // namespace braid
