// A run that restarts by itself after one of its rank processes was killed or hung, on one host or on several.
#pragma once

#include "braid/cli/torch/job.h"
#include "braid/cli/torch/run_folder.h"
#include "braid/cli/torch/run_printer.h"
#include "braid/train/run.h"

namespace braid::cli {

// A command's objects for a run. REQUIRES: all of them outlive the run.
struct RunParts {
  RunFolder* folder;  // has admitted the run; null on all nodes but node 0
  RunPrinter& printer;
  Job* job;  // null: all ranks are on this host
};

// Calls run_training() with the signals of StopSignals. If ranks are processes and one of them fails, reports that on
// standard error and restarts the run.
// * It restarts from the newest whole checkpoint of the folder. If this run has written none, it restarts where it
//   began.
// * It restarts at most run.max_restarts times, and not after a signal to stop.
// * After a kill for memory it restarts only if the run has made a step since it started and since the last such kill.
// * Errors that ranks throw themselves end the run, as in run_training().
// * The nodes of a job restart together. If a node fails, the run fails.
// * Throws StoppedBeforeRanks (job_agreements.h) on all nodes if one of them received a signal before its ranks ran.
train::RunEnd restarting_run(const RunSpec& spec, const RunParts& parts);

// Returns the signal that has ended the run, on this host or on another node of the job; 0: none. Collective over the
// job.
int signal_of_all(Job* job);

// Called by node 0 instead of agreed_spec(): all other nodes throw a ConfigError with the reason.
void broadcast_refusal(Job& job, const std::string& why);

// Returns `spec` with the checkpoint to resume from and the initial weights that node 0 has chosen; for runs on several
// hosts. Throws ConfigError on all nodes if some do not see the folder that node 0 has locked, or cannot write there.
// Collective over the job.
RunSpec agreed_spec(RunSpec spec, Job& job);

}  // namespace braid::cli
