// Reads one TOML table of a cluster file key by key. Collects its errors: values that break their rule, missing keys,
// unknown keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/spec/toml_document.h"

namespace braid::plan {

enum class TableSource { Needed, Optional };

struct NumberRule {
  double least = 0, most = 1e18;
  // Open: `least` itself is not allowed, such as 0 for a rate.
  enum class End { Closed, Open } lower = End::Open;
  TableSource given = TableSource::Needed;
};

// The largest number of nodes, and the largest number of devices of a node.
inline constexpr int kMostCounted = 1 << 20;

class TableReader {
 public:
  // `path` names the table in messages, such as "devices[0]"; empty: the table is the whole file. `table`, `origin` and
  // `problems` outlive this.
  TableReader(const spec::TomlTable& table, std::string path, const std::string& origin,
              std::vector<Problem>& problems);

  // Stores the number times `unit` in `to`. Leaves `to` unchanged if the key is missing or its value breaks the rule.
  void read(const char* key, const NumberRule& rule, double unit, double& to);
  // Reads a count from 1 to kMostCounted.
  void read(const char* key, int& to, TableSource given = TableSource::Needed);
  void read(const char* key, std::string& to);
  void read(const char* key, bool& to);
  // Return the table or list at `key`, or null if the key is missing or has another type. Another type is a problem,
  // and so is a missing key that is Needed.
  const spec::TomlTable* table(const char* key, TableSource given);
  const spec::TomlList* list(const char* key, TableSource given);

  // Adds a problem at a key of the table, or at the table itself if `key` is empty.
  void refuse(const std::string& key, const std::string& rule, const std::string& nearest = "");
  std::string path_of(const std::string& key) const;
  // Adds a problem for each key that was never read. Call it last. `meant` returns the key to suggest for an unknown
  // one; null: the most similar known key.
  void refuse_unknown_keys(std::string (*meant)(const std::string& key) = nullptr);

 private:
  const spec::TomlValue* find(const char* key, TableSource given);
  const spec::TomlValue* look(const std::string& key) const;

  const spec::TomlTable& table_;
  const std::string path_;
  const std::string& origin_;
  std::vector<Problem>& problems_;
  std::vector<std::string> known_;
};

}  // namespace braid::plan
