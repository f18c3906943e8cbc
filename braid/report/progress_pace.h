// Chooses the steps of a run that are shown.
#pragma once

#include <cstdint>
#include <optional>

namespace braid::report {

// Shows the first step that it is asked about, the last of the run, those that `every` (at least 1) divides, and each
// that ends `seconds` or more after the one shown before it: slow steps are all shown, quick ones leave some out, and
// whoever watches is never left alone for much longer than that.
class ProgressPace {
 public:
  ProgressPace(int64_t every, double seconds) : every_(every), seconds_(seconds) {}

  // Returns true if the step that ends at `now` (seconds, from any origin) is shown. Steps come in their order.
  bool shows(int64_t step, int64_t last_step, double now);

 private:
  int64_t every_;
  double seconds_;
  std::optional<double> shown_at_;
};

}  // namespace braid::report
