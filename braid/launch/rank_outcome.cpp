// A list of texts: the first says whether there is a value or which error, the others are what it carries.
#include "braid/launch/rank_outcome.h"

#include <c10/util/Exception.h>

#include <exception>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/launch/packed.h"
#include "braid/launch/rank_frames.h"

namespace braid {
namespace {

Texts texts_of_current() {
  try {
    throw;
  } catch (const ConfigError& error) {
    Texts texts{"ConfigError"};
    for (const Problem& problem : error.problems()) {
      texts.insert(texts.end(), {problem.key, problem.value, problem.rule, problem.nearest, problem.place});
    }
    return texts;
  } catch (const CommError& error) {
    const CommFailure& failure = error.failure();
    return {"CommError", failure.op, cat(failure.rank), exact(failure.elapsed_seconds), failure.why};
  } catch (const IoError& error) {
    return {"IoError", error.path(), cat(error.offset()), error.why()};
  } catch (const RunError& error) {
    return {"RunError", error.what()};
  } catch (const InternalError& error) {
    return {"InternalError", error.what()};
  } catch (const c10::Error& error) {
    return {"error", error.what_without_backtrace()};
  } catch (const std::exception& error) {
    return {"error", error.what()};
  } catch (...) {
    return {"error", "threw something that is no std::exception"};
  }
}

[[noreturn]] void throw_config_error(const Texts& texts) {
  std::vector<Problem> problems;
  for (size_t i = 1; i + 4 < texts.size(); i += 5) {
    problems.push_back({texts[i], texts[i + 1], texts[i + 2], texts[i + 3], texts[i + 4]});
  }
  throw ConfigError(std::move(problems));
}

}  // namespace

std::string RankOutcome::returned(std::string value) { return packed(Texts{"value", std::move(value)}); }

std::string RankOutcome::thrown() { return packed(texts_of_current()); }

std::string RankOutcome::text_of_thrown() {
  try {
    throw;
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "threw something that is no std::exception";
  }
}

bool RankOutcome::complete(const std::string& bytes) { return unpacked<Texts>(bytes).has_value(); }

std::string RankOutcome::value(const std::string& bytes) {
  const auto read = unpacked<Texts>(bytes);
  check(read && !read->empty(), "only a whole outcome can be read");
  const Texts& texts = *read;
  const std::string& type = texts[0];
  if (type == "value") return texts.at(1);
  if (type == "ConfigError") throw_config_error(texts);
  if (type == "CommError") throw CommError({texts.at(1), std::stoi(texts.at(2)), std::stod(texts.at(3)), texts.at(4)});
  if (type == "IoError") throw IoError(texts.at(1), std::stoll(texts.at(2)), texts.at(3));
  if (type == "RunError") throw RunError(texts.at(1));
  if (type == "InternalError") throw InternalError(texts.at(1));
  throw std::runtime_error(texts.at(1));
}

}  // namespace braid
