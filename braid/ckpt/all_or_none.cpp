// Errors as text that travels.
#include "braid/ckpt/all_or_none.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>

#include "braid/base/errors.h"
#include "braid/ckpt/exchange.h"

namespace braid::ckpt {
namespace {

using nlohmann::json;

std::string outcome_of(const std::function<void()>& step) {
  json outcome;
  try {
    step();
    return {};
  } catch (const IoError& error) {
    outcome = {{"path", error.path()}, {"offset", error.offset()}, {"why", error.why()}};
  } catch (const ConfigError& error) {
    for (const Problem& each : error.problems())
      outcome["problems"].push_back({each.key, each.value, each.rule, each.nearest, each.place});
  } catch (const RunError& error) {
    outcome = {{"failed", error.what()}};
  } catch (const std::bad_alloc&) {
    outcome = {{"failed", "there is no memory for it"}};
  } catch (const c10::OutOfMemoryError&) {
    outcome = {{"failed", "there is no memory of the device for it"}};
  }
  return outcome.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

void all_or_none(const std::function<void()>& step, Communicator& world) {
  std::vector<Problem> problems;
  for (const std::string& text : all_gather_text(outcome_of(step), at::kCPU, world)) {
    if (text.empty()) continue;
    const json outcome = json::parse(text);
    if (outcome.contains("path")) throw IoError(outcome["path"], outcome["offset"], outcome["why"]);
    if (outcome.contains("failed")) throw RunError(outcome["failed"]);
    for (const json& each : outcome["problems"]) {
      const Problem problem{each[0], each[1], each[2], each[3], each[4]};
      if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(problem);
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace braid::ckpt
