// TOML text as a plain tree. Only toml_document.cpp includes the TOML library.
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

// A date or a time, which no field accepts.
struct TomlOther {};

struct TomlValue {
  std::variant<TomlOther, bool, int64_t, double, std::string, TomlList, TomlTable> content;
  std::string written;  // the value as TOML, on one line
  int64_t line = 0;     // line of its key, from 1; 0 for an entry of a list

  template <class Content>
  const Content* as() const {
    return std::get_if<Content>(&content);
  }
};

struct TomlDocument {
  TomlTable root;
  // The first syntax error, with the key "origin:line:column"; `root` is empty then. Empty if the text is valid.
  std::vector<Problem> problems;
};

TomlDocument toml_document(const std::string& text, const std::string& origin);

}  // namespace braid::spec
