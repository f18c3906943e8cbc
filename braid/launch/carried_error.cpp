// A list of texts, each behind its length; the first says which error it is.
#include "braid/launch/carried_error.h"

#include <c10/util/Exception.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

using Texts = std::vector<std::string>;

std::string packed(const Texts& texts) {
  std::string bytes;
  const auto append = [&](uint64_t number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
  append(texts.size());
  for (const std::string& text : texts) {
    append(text.size());
    bytes += text;
  }
  return bytes;
}

std::optional<Texts> unpacked(const std::string& bytes) {
  size_t at = 0;
  const auto number = [&]() -> std::optional<uint64_t> {
    uint64_t value;
    if (bytes.size() - at < sizeof value) return std::nullopt;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    at += sizeof value;
    return value;
  };
  const auto count = number();
  if (!count) return std::nullopt;
  Texts texts;
  while (texts.size() < *count) {
    const auto length = number();
    if (!length || bytes.size() - at < *length) return std::nullopt;
    texts.push_back(bytes.substr(at, *length));
    at += *length;
  }
  return texts;
}

// IoError keeps its reason only as the end of what it says.
std::string reason_of(const IoError& error) {
  const std::string before = IoError(error.path(), error.offset(), "").what();
  return std::string(error.what()).substr(before.size());
}

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
    return {"IoError", error.path(), cat(error.offset()), reason_of(error)};
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

std::string CarriedError::none() { return packed({"none"}); }

std::string CarriedError::current() { return packed(texts_of_current()); }

std::string CarriedError::current_text() {
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

bool CarriedError::complete(const std::string& bytes) { return unpacked(bytes).has_value(); }

void CarriedError::rethrow(const std::string& bytes) {
  const auto read = unpacked(bytes);
  check(read && !read->empty(), "only a whole error can be thrown again");
  const Texts& texts = *read;
  const std::string& type = texts[0];
  if (type == "none") return;
  if (type == "ConfigError") throw_config_error(texts);
  if (type == "CommError") throw CommError({texts.at(1), std::stoi(texts.at(2)), std::stod(texts.at(3)), texts.at(4)});
  if (type == "IoError") throw IoError(texts.at(1), std::stoll(texts.at(2)), texts.at(3));
  if (type == "RunError") throw RunError(texts.at(1));
  if (type == "InternalError") throw InternalError(texts.at(1));
  throw std::runtime_error(texts.at(1));
}

}  // namespace braid
