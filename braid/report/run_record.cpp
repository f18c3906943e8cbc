// The reader of metrics.jsonl. It reads one line at a time, so a long run needs memory only for its curves.
#include "braid/report/run_record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "braid/base/json_text.h"
#include "braid/base/line_reader.h"

namespace braid::report {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Returns the text of a value; "..." for a list or an object.
std::string text_of(const OrderedJson& value) {
  if (value.is_structured()) return "...";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::vector<double> numbers(const OrderedJson& list) {
  std::vector<double> all;
  if (!list.is_array()) return all;
  for (const auto& value : list) all.push_back(value.is_number() ? value.get<double>() : 0);
  return all;
}

// Steps ascend within a start. A point whose step does not ascend is left out, and so is a value that is not finite.
void append(Series& series, Point point) {
  if (std::isfinite(point.y) && (series.empty() || series.back().x < point.x)) series.push_back(point);
}

void cut(Series& series, int64_t last_step) {
  while (!series.empty() && series.back().x > static_cast<double>(last_step)) series.pop_back();
}

void read_start(const OrderedJson& line, RunRecord& record) {
  record.start.clear();
  record.environment.clear();
  for (const auto& [key, value] : line.items()) {
    if (value.is_number()) record.start[key] = value.get<double>();
  }
  if (const auto environment = line.find("environment"); environment != line.end()) {
    for (const auto& [key, value] : environment->items()) record.environment.emplace_back(key, text_of(value));
  }
  const auto first = line.value("first_step", int64_t{0});
  record.first_steps.push_back(first);
  for (auto& [key, series] : record.steps) cut(series, first);
  for (auto& [layer, series] : record.layer_grad_norms) cut(series, first);
  cut(record.validation, first);
  cut(record.validation_per_byte, first);
  std::erase_if(record.checkpoints, [&](const auto& saved) { return saved.first > first; });
}

Series& named(std::vector<std::pair<std::string, Series>>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &std::pair<std::string, Series>::first);
  return found == all.end() ? all.emplace_back(name, Series()).second : found->second;
}

void read_step(const OrderedJson& line, RunRecord& record) {
  const auto step = line.at("step").get<double>();
  for (const auto& [key, value] : line.items()) {
    if (value.is_number() && key != "step") append(record.steps[key], {step, value.get<double>()});
  }
  if (const auto layers = line.find("layer_grad_norms"); layers != line.end() && layers->is_object()) {
    for (const auto& [layer, norm] : layers->items()) {
      if (norm.is_number()) append(named(record.layer_grad_norms, layer), {step, norm.get<double>()});
    }
  }
  const auto peaks = line.find("peak_memory_bytes");
  if (peaks != line.end()) record.peak_memory = numbers(*peaks);
}

void read_evaluation(const OrderedJson& line, RunRecord& record) {
  const auto step = line.at("step").get<double>();
  for (const auto& [key, series] :
       {std::pair{"validation_loss", &record.validation}, {"validation_loss_per_byte", &record.validation_per_byte}}) {
    const auto loss = line.find(key);
    if (loss != line.end() && loss->is_number()) append(*series, {step, loss->get<double>()});
  }
}

using BytesByCategory = std::vector<std::pair<std::string, std::vector<double>>>;

BytesByCategory bytes_by_category(const OrderedJson& object) {
  BytesByCategory all;
  for (const auto& [category, bytes] : object.get_ref<const OrderedJson::object_t&>()) {
    all.emplace_back(category, numbers(bytes));
  }
  return all;
}

void forget_prediction(RunRecord& record) {
  record.prediction.clear();
  record.predicted_memory.clear();
  record.predicted_peak.clear();
}

void read_prediction(const OrderedJson& line, RunRecord& record) {
  forget_prediction(record);
  for (const auto& [key, value] : line.items()) {
    if (value.is_number()) record.prediction[key] = value.get<double>();
  }
  record.predicted_memory = bytes_by_category(line.at("memory_bytes"));
  record.predicted_peak = numbers(line.at("peak_memory_bytes"));
}

void read_comparison(const OrderedJson& line, RunRecord& record) {
  record.compared.clear();
  for (const auto& [name, content] : line.at("ways").get_ref<const OrderedJson::object_t&>()) {
    ComparedWay way{name, {}, {}};
    for (const auto& [key, value] : content.items()) {
      if (value.is_string()) way.texts[key] = value.get<std::string>();
      if (value.is_number()) way.numbers[key] = value.get<double>();
    }
    record.compared.push_back(std::move(way));
  }
}

void read_line(const OrderedJson& line, RunRecord& record) {
  const std::string kind = line.at("kind");
  if (kind == "run") {
    forget_prediction(record);  // an earlier start's, perhaps on another mesh
    read_start(line, record);
  } else if (kind == "step") {
    read_step(line, record);
  } else if (kind == "evaluation") {
    read_evaluation(line, record);
  } else if (kind == "checkpoint") {
    record.checkpoints.emplace_back(line.at("step"), line.at("directory"));
  } else if (kind == "peak") {
    record.peak_flops = line.at("flops_per_second");
    record.peak_source = line.value("source", "");
  } else if (kind == "memory") {
    record.memory = bytes_by_category(line.at("peak_bytes"));
  } else if (kind == "prediction") {
    read_prediction(line, record);
  } else if (kind == "comparison") {
    read_comparison(line, record);
  }
}

}  // namespace

double RunRecord::last(const std::string& key) const {
  const auto found = steps.find(key);
  const bool none = found == steps.end() || found->second.empty();
  return none ? std::numeric_limits<double>::quiet_NaN() : found->second.back().y;
}

Series RunRecord::since_last_start(const std::string& key, int64_t skipped) const {
  const auto found = steps.find(key);
  if (found == steps.end()) return {};
  Series series = found->second;
  const auto before = static_cast<double>((first_steps.empty() ? 0 : first_steps.back()) + skipped);
  std::erase_if(series, [&](const Point& point) { return point.x <= before; });
  return series;
}

int64_t RunRecord::num_steps() const {
  double last = first_steps.empty() ? 0 : static_cast<double>(first_steps.back());
  for (const auto& [key, series] : steps) {
    if (!series.empty()) last = std::max(last, series.back().x);
  }
  return static_cast<int64_t>(last);
}

namespace {

void take_text(const std::string& text, RunRecord& record) {
  if (text.empty()) return;
  OrderedJson line;
  if (read_json(text, line).line > 0) {
    ++record.num_damaged_lines;
    return;
  }
  try {
    read_line(line, record);
  } catch (const OrderedJson::exception&) {
    ++record.num_damaged_lines;
  }
}

}  // namespace

RunRecord read_run_record(std::istream& lines) {
  RunRecord record;
  for (std::string text; std::getline(lines, text);) take_text(text, record);
  return record;
}

RunRecord read_run_record(const std::string& path) {
  RunRecord record;
  LineReader lines(path, Links::Followed);
  for (std::string text; lines.next(text);) take_text(text, record);
  return record;
}

}  // namespace braid::report
