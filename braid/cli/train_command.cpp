// braid train: a run from a configuration file to weights, metrics, timeline and sample.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/base/utf8.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/named_checkpoint.h"
#include "braid/cli/output_file.h"
#include "braid/cli/resume_command.h"
#include "braid/cli/run_folder.h"
#include "braid/cli/run_printer.h"
#include "braid/cli/stop_signals.h"
#include "braid/cli/terminal.h"
#include "braid/mesh/device_mesh.h"
#include "braid/report/chrome_trace.h"
#include "braid/report/timeline_svg.h"
#include "braid/sim/simulate.h"
#include "braid/spec/describe.h"
#include "braid/spec/fields.h"
#include "braid/spec/parse.h"
#include "braid/train/generate.h"
#include "braid/train/initial_weights.h"
#include "braid/train/run.h"
#include "braid/train/step_schedule.h"

namespace braid {
namespace {

constexpr const char* kLatest = "latest";  // of train.out

// The checkpoint that train.resume means; empty when the run starts anew.
std::string resumed_checkpoint(const TrainSpec& train, RunPrinter& printer) {
  if (train.resume.empty()) return "";
  const std::string& path = train.resume == kLatest ? train.out : train.resume;
  return named_checkpoint({"train.resume", toml_text(train.resume), path},
                          [&](const std::string& fault) { printer.note("passed over " + fault); });
}

// No folder is made for a run that is to go on where none has been.
void refuse_latest_of_nothing(const TrainSpec& train) {
  if (train.resume != kLatest || path_kind(train.out) == PathKind::Folder) return;
  throw ConfigError(
      {{"train.resume", toml_text(train.resume), cat("must find a run in ", train.out, ", which is no folder"), ""}});
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

// Draws the measured timeline above the same step without waiting, writes both with every rank's spans, and prints the
// closing lines.
void show_end(const RunEnd& end, RunPrinter& printer) {
  const RunSpec& spec = end.spec;
  const Timeline measured = first_pipeline(end.timeline, spec.mesh);
  const Timeline ideal = replay(end.schedule, measured);
  write_file(spec.train.out + "/timeline.svg", timeline_svg({{"measured", measured}, {"ideal", ideal}}));
  write_file(spec.train.out + "/trace.json",
             chrome_trace({{"measured", end.timeline}, {"ideal", every_pipeline(ideal, spec.mesh)}}));
  printer.print_end(end, measured.bubble_fraction(), ideal.bubble_fraction());
}

void show_sample(const RunEnd& end) {
  const RunSpec& spec = end.spec;
  if (spec.train.sample_prompt.empty()) return;
  GenerateOptions options;
  options.prompt = spec.train.sample_prompt;
  options.num_tokens = spec.train.sample_tokens;
  options.seed = spec.train.seed;
  options.ranks = spec.run.ranks;
  const std::string text = whole_characters(options.prompt + generate(end.checkpoint, options, nullptr));
  write_file(spec.train.out + "/sample.txt", text + "\n");
  std::cout << "sample, also in " << spec.train.out << "/sample.txt:\n" << text << std::endl;
}

// What the user asked for: the file, and the words that override it.
struct Invocation {
  std::string path;
  std::vector<std::string> overrides;
};

void note_missing_locks(const RunFolder& folder, RunPrinter& printer) {
  const std::string why = folder.why_open_to_others();
  if (!why.empty())
    printer.note(cat("nothing keeps a second run out of ", folder.path(), ": no locks there (", why, ")"));
}

int ended_by_signal(int signal, const RunEnd& end, const Invocation& request, RunPrinter& printer) {
  const std::string command =
      end.interrupted ? resume_command(program_invocation_name, request.path, request.overrides, end.checkpoint) : "";
  printer.print_interruption(end, signal_name(signal), command);
  return 128 + signal;  // as shells say it
}

int train(const Invocation& request, RunSpec spec) {
  StopSignals signals;
  RunFolder folder(spec.train.out);  // before anything is computed, so that a wrong path costs nothing
  RunPrinter printer(std::cout, stdout_is_terminal() ? Terminal::Interactive : Terminal::Plain,
                     [&](int64_t first_step) {
                       signals.keep_work();
                       return folder.begin(first_step);
                     });
  note_missing_locks(folder, printer);
  spec.train.resume = resumed_checkpoint(spec.train, printer);
  folder.admit(spec.train);
  spec.train.overwrite = false;  // a permission for this start: who runs the configuration that is written must say it
  const RunEnd end = run_training(spec, printer, [] { return StopSignals::received() != 0; });
  signals.work_is_kept();
  show_end(end, printer);
  if (const int signal = StopSignals::received()) return ended_by_signal(signal, end, request, printer);
  show_sample(end);
  std::cout.clear();  // a run whose lines nobody reads has ended as well as any
  return 0;
}

}  // namespace

int train_command(const Words& words) {
  CLI::App app("Trains a language model. Words after the file override its keys: train.steps=50 mesh.data=2",
               "braid train");
  Invocation request;
  app.add_option("FILE", request.path, "the run as TOML")->required();
  add_overrides(app, request.overrides);
  app.footer(config_text());
  if (const auto code = parse_words(app, words)) return *code;

  ParseOptions options(host_limits());
  options.model_of_checkpoint = model_of_initial_checkpoint;
  const RunSpec spec = read_run(request.path, request.overrides, options);
  refuse_faulty_schedule(spec);  // before anything is written
  refuse_latest_of_nothing(spec.train);
  return train(request, spec);
}

}  // namespace braid
