// The state of a training run as a line of text. Pure functions: they neither print nor know the terminal.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace braid::report {

// Chooses the steps of a run that are shown.

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

// The values of a progress line. NaN stands for an unknown value, which is left out.
struct Progress {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int64_t step = 0;  // steps done
  int64_t steps = 0;
  double loss = kUnknown;
  double lr = kUnknown;
  double grad_norm = kUnknown;
  double tokens_per_second = kUnknown;
  double utilisation = kUnknown;
  double bubble_fraction = kUnknown;
  double peak_bytes = kUnknown;
  double seconds_per_step = kUnknown;  // the time left is this times the steps left
};

// "step 120/1000  loss 2.3451  lr 3.00e-04  grad norm 1.234  45.2k tokens/s  mfu 41.2%  bubble 8.3%  peak 1.2 GiB  eta
// 3m12s"
std::string progress_line(const Progress& progress);

// The same as a bar of at most `width` columns, for a terminal that rewrites its last line (no newline, no escapes;
// UTF-8). What does not fit is left out, the least important first; the bar keeps at least 10 columns.
std::string progress_bar(const Progress& progress, int width);

// 42 -> "42s", 192 -> "3m12s", 7500 -> "2h05m", 274000 -> "3d04h".
std::string duration_text(double seconds);

}  // namespace braid::report
