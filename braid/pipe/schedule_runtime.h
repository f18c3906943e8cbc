// Runs one rank's program of a schedule. It calls the executor for compute actions, and sends and receives the
// executor's tensors.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/pipe/stage_executor.h"
#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"

namespace braid::pipe {

class ScheduleRuntime {
 public:
  // Sends complete in the background. Receives are posted kReceivesAhead actions ahead. REQUIRES: `schedule` has its
  // sends and receives (with_comms) and validates with buffered sends; its rank r is rank r of `pipe`; all three
  // arguments outlive this.
  ScheduleRuntime(const Schedule& schedule, Communicator& pipe, StageExecutor& executor);

  // Runs one step. Returns this rank's spans, in seconds of now_seconds(), once its sends are done and its receives
  // have completed; the two actions of a fused pair have the same span. Throws the executor's errors and CommError.
  // Throws InternalError if a program reads a tensor that it has not received, or has a malformed fused pair. A program
  // that deadlocks ends in CommError if the communicator detects that all ranks wait.
  std::vector<schedule::Span> run_step();

 private:
  static constexpr size_t kReceivesAhead = 4;

  std::string words(const Action& action) const;
  void execute(const Action& action);
  void execute_fused(const Action& forward, const Action& backward);
  void require_runnable(const Action& action) const;
  void post_receives(const Program& program, size_t from);
  Work post_receive(const Action& action);
  void post_send(const Action& action, const StageExecutor::Tensors& tensors);
  void complete_receive(const Action& action);
  void hand_over(const Action& action);
  int peer_of(const Action& action) const;
  std::vector<P2p> transfers(P2p::Kind kind, const Action& action, const StageExecutor::Tensors& tensors) const;

  const Schedule& schedule_;
  Communicator& pipe_;
  StageExecutor& executor_;
  std::vector<Work> sends_;
  std::map<Action, Work> receives_;  // receives that are posted but not yet reached by the program
  size_t posted_until_ = 0;          // the receives of all actions below this index have been posted
};

}  // namespace braid::pipe
