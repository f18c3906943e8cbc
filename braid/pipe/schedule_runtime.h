// Runs one rank's program of a schedule: calls the executor for compute actions, and sends and receives its tensors.
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
  // `schedule` has its sends and receives (with_comms) and validates with buffered sends; its rank r is rank r of
  // `pipe`. All outlive this. Sends complete in the background, receives are posted kReceivesAhead actions ahead.
  ScheduleRuntime(const Schedule& schedule, Communicator& pipe, StageExecutor& executor);

  // One step. Returns this rank's spans, in seconds of now_seconds(), when every transfer of the step is done; the two
  // of a fused pair are the same time. Throws what the executor throws, CommError, and InternalError where a program
  // reads what it has not received or breaks the form of a fused pair. A program that can never go on ends in
  // CommError on a communicator that notices when all ranks wait.
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
  std::map<Action, Work> receives_;  // posted, not yet reached by the program
  size_t posted_until_ = 0;          // actions before this have had their receives posted
};

}  // namespace braid::pipe
