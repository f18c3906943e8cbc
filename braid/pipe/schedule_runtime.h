// Runs one rank's program of a schedule. One switch over Op; it knows no model and no optimizer.
#pragma once

#include "braid/comm/communicator.h"
#include "braid/pipe/stage_executor.h"
#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"

namespace braid {

class ScheduleRuntime {
 public:
  // `schedule` has its sends and receives (with_comms) and is valid; rank r of it is rank r of `pipe`. All outlive this.
  ScheduleRuntime(const Schedule& schedule, Communicator& pipe, StageExecutor& executor);

  // One step. Receives are posted a window ahead and sends complete in the background, so no order of sends deadlocks
  // that the validator accepts. Returns when all transfers of the step are done. The spans are in seconds of now_seconds().
  std::vector<Span> run_step();

 private:
  struct Mailbox;
  void execute(const Action& action, Mailbox& mailbox);

  const Schedule& schedule_;
  Communicator& pipe_;
  StageExecutor& executor_;
};

}  // namespace braid
