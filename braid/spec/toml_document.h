// TOML text as a plain tree, so that one source file alone includes the TOML library.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "braid/base/errors.h"

namespace braid::spec {

struct TomlValue;
using TomlList = std::vector<TomlValue>;
using TomlTable = std::vector<std::pair<std::string, TomlValue>>;  // in the order of the text

// A date or a time: no field takes one.
struct TomlOther {};

struct TomlValue {
  std::variant<TomlOther, bool, int64_t, double, std::string, TomlList, TomlTable> content;
  std::string written;  // the value as TOML, in one line
  int64_t line = 0;     // that its key stands on, from 1; of a value of a list 0

  template <class Content>
  const Content* as() const {
    return std::get_if<Content>(&content);
  }
};

struct TomlDocument {
  TomlTable root;
  std::vector<Problem> problems;  // the first syntax error, its key is "origin:line:column"; then root is empty
};

TomlDocument toml_document(const std::string& text, const std::string& origin);

}  // namespace braid::spec
