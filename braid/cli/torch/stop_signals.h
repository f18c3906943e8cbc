// Handles SIGINT, SIGTERM and SIGHUP during a run. The effect depends on whether a signal would lose work.
#pragma once

#include <cstdint>
#include <string>

namespace braid::cli {

// The signal handlers of a run. At most one object exists at a time, because its state is global: a signal handler can
// reach nothing else. While it exists:
//
// * If no work would be lost, a signal ends the process at once with exit code 128 + signal, after a line on standard
//   error.
// * If work would be lost, the first signal is kept for received(), and a line on standard error reports it. Another
//   signal ends the process at once, with its own code. A signal within kSameEventSeconds of the first counts as the
//   same: a terminal that is closed and timeout(1) send two.
// * A signal that was ignored when the process began stays ignored (nohup, background jobs of scripts).
// * SIGUSR1 requests a save; the run continues: takes_save_request().
// * Processes forked meanwhile, such as ranks, share this state: keep_work() in one of them holds for all. A signal to
//   a forked process does not end that process. It counts as a signal to the run.
// * Writing to a standard output that was closed fails instead of ending the process (SIGPIPE).
class StopSignals {
 public:
  static constexpr double kSameEventSeconds = 0.25;

  StopSignals();   // begins in the state in which no work would be lost
  ~StopSignals();  // restores the earlier handlers
  StopSignals(const StopSignals&) = delete;

  // Sets the text that follows the report of a signal that is kept, on standard error. A launcher may end the process
  // before the run is saved and anything else can be printed. Ranks forked later have the text too.
  void set_resume_text(std::string text);

  // From now on other hosts end together with this process, so they must be notified of a signal first. The signal is
  // kept as if work would be lost.
  void others_hear();
  static void keep_work();  // from now on work would be lost; a rank may call this too
  void work_is_kept();      // from now on no work would be lost

  // Returns the first signal that came while work would have been lost; 0: none.
  static int received();
  // Returns true if SIGUSR1 has requested a save since the last call, in any process that shares this state.
  static bool takes_save_request();

 private:
  std::string resume_text_;
};

// Returns the name of a signal: "SIGTERM".
std::string signal_name(int signal);

}  // namespace braid::cli
