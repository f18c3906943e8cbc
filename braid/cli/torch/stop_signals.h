// SIGINT, SIGTERM and SIGHUP while a run goes on: what each does depends on whether there is work that it would lose.
#pragma once

#include <cstdint>
#include <string>

namespace braid::cli {

// While one exists, which is once at a time, because a signal handler can reach nothing but what is global:
//
// * Where nothing would be lost, a signal ends the process at once with exit code 128 + signal, after a line on
//   standard error.
// * Where work would be, the first is kept for received(), a line on standard error says so, and another one ends the
//   process at once, with the code of that one. One that comes within kSameEventSeconds of the first counts as the
//   same: a terminal that is closed and timeout(1) send two.
// * One that was ignored when the process began stays ignored (nohup, background jobs of scripts).
// * SIGUSR1 asks for a save, of a run that goes on: takes_save_request().
// * Processes that are forked meanwhile, as ranks may be, share this knowledge: what one of them says with keep_work()
//   counts for all. A forked process that gets a signal is not ended by it: the signal counts as one sent to the run.
// * Writing to a standard output that is gone fails instead of ending the process (SIGPIPE).
class StopSignals {
 public:
  static constexpr double kSameEventSeconds = 0.25;

  StopSignals();   // nothing would be lost
  ~StopSignals();  // signals do what they did before
  StopSignals(const StopSignals&) = delete;

  // From here on others end with this process, and must hear of a signal first: it is kept as if work would be lost.
  void others_hear();
  static void keep_work();  // from here on something would be lost; by a rank too
  void work_is_kept();      // from here on nothing would be any more

  // The first signal that came while work would have been lost; 0: none.
  static int received();
  // Returns true once if SIGUSR1 has requested a save since the last call of any process that shares this state.
  static bool takes_save_request();
};

// "SIGTERM".
std::string signal_name(int signal);

}  // namespace braid::cli
