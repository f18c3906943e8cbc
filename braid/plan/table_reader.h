// Reads one table of a cluster file key by key, and remembers all that is wrong: values that break their rule, keys
// that are missing or that nobody knows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/spec/toml_document.h"

namespace braid::plan {

enum class TableSource { Needed, Optional };

struct NumberRule {
  double least = 0, most = 1e18;
  // Open: `least` itself is not allowed, as 0 is no rate.
  enum class End { Closed, Open } lower = End::Open;
  TableSource given = TableSource::Needed;
};

// The largest number of nodes, and of devices of a node.
inline constexpr int kMostCounted = 1 << 20;

class TableReader {
 public:
  // `path` names the table in messages, "devices[0]"; empty: the whole file. Both outlive this.
  TableReader(const spec::TomlTable& table, std::string path, const std::string& origin,
              std::vector<Problem>& problems);

  // Into `to`, multiplied by `unit`; left as it is where the key is missing or wrong.
  void read(const char* key, const NumberRule& rule, double unit, double& to);
  // A count, from 1 to kMostCounted.
  void read(const char* key, int& to, TableSource given = TableSource::Needed);
  void read(const char* key, std::string& to);
  void read(const char* key, bool& to);
  // Null where it is missing or, with a problem, no such thing.
  const spec::TomlTable* table(const char* key, TableSource given);
  const spec::TomlList* list(const char* key, TableSource given);

  // At a key of the table, or at the table itself where `key` is empty.
  void refuse(const std::string& key, const std::string& rule, const std::string& nearest = "");
  std::string path_of(const std::string& key) const;
  // Last: keys that were never asked for. `meant` says which known key one stands for; null: the most alike.
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
