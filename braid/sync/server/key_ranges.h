// The assignment of keys to servers. Servers hold neighbouring ranges, as equal in size as whole blocks allow. A key is
// an element of the flat parameters, or a row of a table.
#pragma once

#include <cstdint>
#include <vector>

namespace braid::sync::server {

struct KeyRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const KeyRange&) const = default;
};

class KeyRanges {
 public:
  // Cuts the ranges at multiples of `align` keys. The range of a server may be empty.
  KeyRanges(int64_t num_keys, int num_servers, int64_t align = 1);

  int num_servers() const { return static_cast<int>(begins_.size()) - 1; }
  KeyRange of(int server) const;

 private:
  std::vector<int64_t> begins_;  // first key of each server, then the end
};

}  // namespace braid::sync::server
