// braid train: trains a model from a configuration file, and writes weights, metrics, a timeline and a sample.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <optional>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/resume_command.h"
#include "braid/cli/terminal.h"
#include "braid/cli/torch/finished_run.h"
#include "braid/cli/torch/job.h"
#include "braid/cli/torch/job_agreements.h"
#include "braid/cli/torch/restarting_run.h"
#include "braid/cli/torch/resumed_checkpoint.h"
#include "braid/cli/torch/run_entries.h"
#include "braid/cli/torch/run_folder.h"
#include "braid/cli/torch/run_placement.h"
#include "braid/cli/torch/run_printer.h"
#include "braid/cli/torch/stop_signals.h"
#include "braid/disk/bus_error.h"
#include "braid/launch/engines.h"
#include "braid/spec/describe.h"
#include "braid/spec/fields.h"
#include "braid/spec/parse.h"
#include "braid/spec/partition.h"
#include "braid/train/run.h"
#include "braid/train/step_schedule.h"

namespace braid::cli {
namespace {

// The configuration file and the overrides that the user gave.
struct Invocation {
  std::string path;
  std::vector<std::string> overrides;
};

void note_missing_locks(const RunFolder& folder, RunPrinter& printer) {
  const std::string why = folder.why_open_to_others();
  if (!why.empty())
    printer.note(cat("nothing keeps a second run out of ", folder.path(), ": no locks there (", why, ")"));
}

// The inputs of a start other than the spec, from the user or a launcher.
struct Start {
  Invocation request;
  JobPlace place;
  JobOptions options;
};

// Adapts a run to a launcher that restarts the processes it has started, ranks or a single one, as the next attempt. If
// the launcher starts the ranks, braid does not restart them too. A later attempt resumes from the newest intact
// checkpoint of earlier ones. If there is none, it overwrites the files that they left.
void follow_launcher(const JobPlace& place, TrainSpec& train, LaunchSpec& run) {
  if (place.one_rank_each) run.max_restarts = 0;
  if (place.node != 0 || place.attempt == 0 || !train.resume.empty()) return;
  if (!RunFolder::is_of_job(train.out, place.job)) return;
  train.resume = ckpt::chosen_checkpoint(train.out).directory;
  train.overwrite = train.resume.empty();
}

// Returns the words of a job as this node was given them; none if there is no job or if a launcher gives the place.
std::vector<std::string> words_of_job(const Start& start) {
  if (start.options.nodes == 0 || !start.place.launcher.empty()) return {};
  return job_words(start.options);
}

// Returns the command that resumes the run of this folder from `checkpoint`.
std::string command_of(const std::filesystem::path& folder, const std::string& checkpoint, const Start& start) {
  std::vector<std::string> words = words_of_job(start);
  words.insert(words.end(), start.request.overrides.begin(), start.request.overrides.end());
  const bool is_there = path_kind(start.request.path) == PathKind::File;  // a pipe has been read to its end
  return resume_command(program_invocation_name, is_there ? start.request.path : (folder / kConfigName).string(), words,
                        checkpoint);
}

std::string command_from(const std::string& checkpoint, const Start& start, RunPrinter& printer) {
  if (!words_of_job(start).empty()) printer.note("every host takes it up with its own --node");
  return command_of(std::filesystem::path(checkpoint).parent_path(), checkpoint, start);
}

// Returns the text that a signal prints at once. A launcher that has passed a signal on kills the ranks after a time,
// perhaps before they have saved: mpirun of Open MPI after a second. Empty if nothing may end the run early.
std::string text_after_signal(const Start& start, const std::string& out) {
  if (!start.place.one_rank_each || start.place.launcher_restarts) return "";
  return cat("braid: if ", start.place.launcher,
             " ends the ranks first, this resumes from the newest whole checkpoint:\n", command_of(out, out, start),
             "\n");
}

// Prints the command that resumes a failed run. Prints nothing if a launcher restarts it.
void print_resume_command(const Start& start, const std::string& out, RunPrinter& printer) {
  const std::string checkpoint = ckpt::chosen_checkpoint(out).directory;
  if (checkpoint.empty() || start.place.launcher_restarts) return;
  const std::string command = command_from(checkpoint, start, printer);
  const std::string& launcher = start.place.launcher;
  printer.note(cat("the run has failed; to resume from its newest whole checkpoint",
                   launcher.empty() ? "" : cat(", under ", launcher), ":"));
  std::cout << command << std::endl;
}

// Called on all nodes before they exit with an error code, on node 0 after it has printed what the user needs. Many
// launchers end all other processes once one has failed, so no node exits before all have called this.
void meet_before_exit(Job& job) {
  try {
    job.rounds().exchange(std::string());
  } catch (const CommError&) {  // a node has failed, so there is nothing to wait for
  }
}

int ended_by_signal(int signal, const train::RunEnd& end, const Start& start, RunPrinter& printer) {
  const std::string command = end.interrupted ? command_from(end.checkpoint, start, printer) : "";
  printer.print_interruption(end, signal_name(signal), command);
  return 128 + signal;  // as in shells
}

// Returns the run's spec with the checkpoint to resume from, after the folder has admitted the run.
RunSpec admitted(RunSpec spec, RunFolder& folder, RunPrinter& printer) {
  note_missing_locks(folder, printer);
  spec.train.resume =
      resumed_checkpoint(spec.train, [&](const std::string& fault) { printer.note("passed over " + fault); });
  folder.admit(spec);
  spec.train.overwrite = false;  // permits this start only; not part of the written configuration
  return spec;
}

// Trains on the only host, or on node 0 of a job, which has rank 0.
int train(const Start& start, RunSpec spec, StopSignals& signals, Job* job) {
  std::optional<RunFolder> folder;
  RunPrinter printer(std::cout, stdout_is_interactive() ? Terminal::Interactive : Terminal::Plain,
                     [&](int64_t first_step) {
                       signals.keep_work();
                       return folder->begin(first_step);
                     });
  try {
    folder.emplace(spec.train.out);  // before anything is computed, so that a wrong path costs no time
    folder->set_job(start.place.job);
    spec = admitted(spec, *folder, printer);
  } catch (const ConfigError& error) {
    if (job) broadcast_refusal(*job, error.what());
    throw;
  }
  if (job) {
    spec = agreed_spec(spec, *job);
    printer.note(placement_text(*job, spec));
  }
  const train::RunEnd end = [&] {
    try {
      return restarting_run(spec, {&*folder, printer, job});
    } catch (const CommError&) {
      if (folder->has_begun()) print_resume_command(start, spec.train.out, printer);
      if (job) meet_before_exit(*job);
      throw;
    }
  }();
  signals.work_is_kept();
  const int signal = signal_of_all(job);
  if (signal != 0) {
    show_end(end, printer);
    const int code = ended_by_signal(signal, end, start, printer);
    if (job) meet_before_exit(*job);
    return code;
  }
  if (job) job->rounds().leave();  // the rest concerns this host alone, and may fork
  show_end(end, printer);
  show_sample(end);
  return 0;
}

// Trains on a node other than node 0. Node 0 prints the run's progress and writes its metrics.
int take_part(const Start& start, RunSpec spec, StopSignals& signals, Job& job) {
  spec.train.overwrite = false;
  RunPrinter printer(std::cout, Terminal::Plain, [](int64_t) { return std::vector<std::string>(); });
  spec = agreed_spec(spec, job);
  // A launcher of ranks shows the output of all of them in one place.
  if (!start.place.one_rank_each) printer.note(placement_text(job, spec));
  try {
    restarting_run(spec, {nullptr, printer, &job});
  } catch (const CommError&) {
    meet_before_exit(job);
    throw;
  }
  signals.work_is_kept();
  const int signal = signal_of_all(&job);
  const std::string leader = cat("node 0 on ", shown_on_line(job.nodes()[0].host));
  std::cout << (signal == 0
                    ? cat("the run has ended; ", leader, " says how")
                    : cat("interrupted by ", signal_name(signal), "; ", leader, " prints the command that resumes it"))
            << std::endl;
  if (signal != 0) meet_before_exit(job);
  return signal == 0 ? 0 : 128 + signal;
}

void refuse_on_hosts(const RunSpec& spec) {
  if (!spec::is_measured(spec.pipeline)) return;
  throw ConfigError(
      {{"pipeline.partition", "\"measured\"",
        "must be \"even\" or a list on several hosts; a run on one host prints what it measures", "\"even\""}});
}

void refuse_engine(const RunSpec& spec, const JobPlace& place) {
  const int ranks_per_node = place.one_rank_each ? 1 : static_cast<int>(spec::num_world_ranks(spec)) / place.num_nodes;
  const CommEngine engine = chosen_engine(spec.run, place.num_nodes);
  const std::string problem = launch::engine_problem(engine, place.num_nodes, ranks_per_node);
  if (!problem.empty()) throw ConfigError({{"run.engine", cat("\"", spec.run.engine, "\""), problem, "\"auto\""}});
}

int train_on_hosts(Start& start, RunSpec spec) {
  spec.run.ranks = RanksAs::Processes;
  refuse_on_hosts(spec);
  JobWork work = work_of_run(start.place, spec);
  work.on_wait = [](const std::string& what) { std::cout << "waits for " << shown_on_line(what) << std::endl; };
  StopSignals signals;
  std::cout << "waits for all " << counted(start.place.num_nodes, "node") << " at " << control::text(start.place.root)
            << std::endl;
  Job job(start.place, work);
  if (job.leads()) signals.set_resume_text(text_after_signal(start, spec.train.out));
  signals.others_hear();
  try {
    return job.leads() ? train(start, spec, signals, &job) : take_part(start, spec, signals, job);
  } catch (const StoppedBeforeRanks& stop) {
    std::cerr << "braid: " << stop.what() << std::endl;
    return 128 + stop.signal;
  }
}

int train_here(const Start& start, const RunSpec& spec) {
  StopSignals signals;
  return train(start, spec, signals, nullptr);
}

}  // namespace

int train_command(const Words& words) {
  CLI::App app("Trains a language model. Words after the file override its keys: train.steps=50 mesh.data=2",
               "braid train");
  Start start;
  Invocation& request = start.request;
  add_run_file(app, request.path)->required();
  add_job_options(app, start.options);
  add_overrides(app, request.overrides);
  app.footer(spec::config_text());
  if (const auto code = parse_words(app, words)) return *code;

  std::vector<Problem> problems;
  start.place.num_nodes = std::max(start.options.nodes, 1);  // for the checks of the run, if job_place() throws
  collect_problems(problems, [&] { start.place = job_place(start.options); });
  spec::HostLimits limits = train::host_limits(start.place.num_nodes);
  if (start.place.one_rank_each) limits.ranks_started = start.place.num_nodes;
  spec::ParseOptions options(limits);
  set_defaults_of_weights(options);
  RunSpec spec;
  collect_problems(problems, [&] { spec = spec::read_run(request.path, request.overrides, options); });
  throw_problems(std::move(problems));
  if (!start.place.note.empty()) std::cerr << "braid: " << shown_on_line(start.place.note) << std::endl;
  train::refuse_faulty_schedule(spec);  // before anything is written
  refuse_latest_of_nothing(spec.train);
  refuse_engine(spec, start.place);
  follow_launcher(start.place, spec.train, spec.run);
  disk::end_with_message_on_bus_error();
  const int code = start.place.num_nodes > 1 ? train_on_hosts(start, spec) : train_here(start, spec);
  std::cout.clear();  // a run whose output could not be written has still succeeded
  return code;
}

}  // namespace braid::cli
