// Formats the state of a training run as a line of text. The functions are pure: they neither print nor read the
// terminal.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace braid::report {

// A choice of the steps that are shown: the first step it is asked about, the last step of the run, steps that `every`
// (at least 1) divides, and each step that ends `seconds` or more after the last one shown. So all slow steps are
// shown, and quick ones are thinned out. A user waits not much longer than `seconds` for output.
class ProgressPace {
 public:
  ProgressPace(int64_t every, double seconds) : every_(every), seconds_(seconds) {}

  // Returns true if the step that ends at `now` (seconds, from any origin) is shown. REQUIRES: steps are passed in
  // their order.
  bool shows(int64_t step, int64_t last_step, double now);

 private:
  int64_t every_;
  double seconds_;
  std::optional<double> shown_at_;
};

// The values of a progress line. NaN stands for an unknown value, which is left out.
struct Progress {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int64_t step = 0;  // completed steps
  int64_t steps = 0;
  double loss = kUnknown;
  double lr = kUnknown;
  double grad_norm = kUnknown;
  double tokens_per_second = kUnknown;
  double utilisation = kUnknown;
  double bubble_fraction = kUnknown;
  double peak_bytes = kUnknown;
  double seconds_per_step = kUnknown;  // the time left is this times the number of steps left
};

// Returns a line of this form:
// "step 120/1000  loss 2.3451  lr 3.00e-04  grad norm 1.234  45.2k tokens/s  mfu 41.2%  bubble 8.3%  peak 1.2 GiB  eta
// 3m12s"
std::string progress_line(const Progress& progress);

// Returns the same as a bar of at most `width` columns, for a terminal that rewrites its last line (no newline, no
// escapes; UTF-8). Values that do not fit are left out, the least important first. The bar keeps at least 10 columns.
std::string progress_bar(const Progress& progress, int width);

// Returns a duration in short form: 42 -> "42s", 192 -> "3m12s", 7500 -> "2h05m", 274000 -> "3d04h".
std::string duration_text(double seconds);

}  // namespace braid::report
