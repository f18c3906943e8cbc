// A run that goes on by itself after one of its rank processes was killed or hung, on one host or on several.
#pragma once

#include "braid/cli/torch/job.h"
#include "braid/cli/torch/run_folder.h"
#include "braid/cli/torch/run_printer.h"
#include "braid/train/run.h"

namespace braid::cli {

// A command's objects for a run. All of them outlive the run.
struct RunParts {
  RunFolder* folder;  // it has admitted the run; null on nodes that do not lead
  RunPrinter& printer;
  Job* job;  // null: all ranks are on this host
};

// run_training(), with the signals of StopSignals. Where ranks are processes and one of them is lost, it says so on
// standard error and begins again: from the newest whole checkpoint of the folder, or, where this run has written none,
// from where it began; run.max_restarts times, and not once somebody has wished the run to stop. Errors that ranks
// themselves have thrown are the run's end, as run_training() throws them. The nodes of a job do this together; when a
// node is lost, the run is. Throws StoppedBeforeRanks (job_agreements.h) on all nodes where a signal came to one first.
train::RunEnd restarting_run(const RunSpec& spec, const RunParts& parts);

// The signal that has ended the run, on this host or on another node of the job; 0: none. Collective over the job.
int signal_of_all(Job* job);

// By node 0, in place of agreed_spec(): all others throw a ConfigError that says why.
void broadcast_refusal(Job& job, const std::string& why);

// On several hosts: `spec` as node 0 has resolved it, with the checkpoint that it goes on from. Throws ConfigError on
// all nodes when some do not see the folder that node 0 holds, or cannot write there. Collective over the job.
RunSpec agreed_spec(RunSpec spec, Job& job);

}  // namespace braid::cli
