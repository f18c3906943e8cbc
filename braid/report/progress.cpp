// The text of the progress line and the progress bar. Callers print it.
#include "braid/report/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "braid/base/text.h"

namespace braid::report {

bool ProgressPace::shows(int64_t step, int64_t last_step, double now) {
  const bool shown = !shown_at_ || step == last_step || step % every_ == 0 || now - *shown_at_ >= seconds_;
  if (shown) shown_at_ = now;
  return shown;
}

namespace {

constexpr int kShortestBar = 10;
constexpr int kLongestBar = 40;

// A piece of the line. If the line is too long, the piece with the highest rank is removed first.
struct Piece {
  std::string text;
  int rank;
};

std::string scientific(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2e", value);
  return buffer;
}

// Returns a loss or a norm with at most four decimals and five significant digits; scientific below 1e-3 and from 1e5.
std::string significant(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || size >= 1e5 || (size > 0 && size < 1e-3)) return scientific(value);
  return fixed(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 4);
}

std::string rate(double value) {
  if (value >= 1e6) return fixed(value / 1e6, 2) + "M";
  if (value >= 1e4) return fixed(value / 1e3, 1) + "k";
  return fixed(value, 0);
}

std::vector<Piece> pieces(const Progress& progress) {
  std::vector<Piece> all;
  const auto add = [&](double value, int rank, std::string text) {
    if (!std::isnan(value)) all.push_back({std::move(text), rank});
  };
  const double left = static_cast<double>(std::max<int64_t>(0, progress.steps - progress.step));
  const double eta = left * progress.seconds_per_step;
  add(progress.loss, 0, cat("loss ", significant(progress.loss)));
  add(progress.lr, 5, cat("lr ", scientific(progress.lr)));
  add(progress.grad_norm, 6, cat("grad norm ", significant(progress.grad_norm)));
  add(progress.tokens_per_second, 2, cat(rate(progress.tokens_per_second), " tokens/s"));
  add(progress.utilisation, 3, cat("mfu ", fixed(100 * progress.utilisation, 1), "%"));
  add(progress.bubble_fraction, 4, cat("bubble ", fixed(100 * progress.bubble_fraction, 1), "%"));
  add(progress.peak_bytes, 7, cat("peak ", human_bytes(progress.peak_bytes)));
  add(eta, 1, cat("eta ", duration_text(eta)));
  return all;
}

int columns(const std::vector<Piece>& all) {
  int sum = 0;
  for (const auto& field : all) sum += 2 + static_cast<int>(field.text.size());
  return sum;
}

std::string bar(double share, int width) {
  const int done = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width));
  std::string text;
  for (int i = 0; i < width; ++i) text += i < done ? "\u2501" : "\u2500";  // heavy and light horizontal line characters
  return text;
}

}  // namespace

std::string progress_line(const Progress& progress) {
  std::string line = cat("step ", progress.step, "/", progress.steps);
  for (const auto& field : pieces(progress)) line += "  " + field.text;
  return line;
}

std::string progress_bar(const Progress& progress, int width) {
  const double share = progress.steps > 0 ? static_cast<double>(progress.step) / progress.steps : 0;
  const std::string count = cat(progress.step, "/", progress.steps);
  const std::string percent = cat(" ", static_cast<int>(std::floor(100 * share)), "%");
  const int fixed_columns = static_cast<int>(count.size() + 1 + percent.size());
  std::vector<Piece> all = pieces(progress);
  while (!all.empty() && fixed_columns + kShortestBar + columns(all) > width) {
    all.erase(std::max_element(all.begin(), all.end(), [](const Piece& a, const Piece& b) { return a.rank < b.rank; }));
  }
  const int room = width - fixed_columns - columns(all);
  std::string line = cat(count, " ", bar(share, std::clamp(room, kShortestBar, kLongestBar)), percent);
  for (const auto& field : all) line += "  " + field.text;
  return line;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::clamp(std::round(seconds), 0.0, 1e12));
  char buffer[48];
  const auto write = [&](const char* format, int64_t large, int64_t small) {
    std::snprintf(buffer, sizeof buffer, format, static_cast<long long>(large), static_cast<long long>(small));
    return std::string(buffer);
  };
  if (whole < 60) return cat(whole, "s");
  if (whole < 3600) return write("%lldm%02llds", whole / 60, whole % 60);
  if (whole < 86400) return write("%lldh%02lldm", whole / 3600, whole % 3600 / 60);
  return write("%lldd%02lldh", whole / 86400, whole % 86400 / 3600);
}

}  // namespace braid::report
