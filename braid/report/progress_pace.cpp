// Steps and seconds.
#include "braid/report/progress_pace.h"

namespace braid::report {

bool ProgressPace::shows(int64_t step, int64_t last_step, double now) {
  const bool shown = !shown_at_ || step == last_step || step % every_ == 0 || now - *shown_at_ >= seconds_;
  if (shown) shown_at_ = now;
  return shown;
}

}  // namespace braid::report
