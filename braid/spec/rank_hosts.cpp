// Numbers with commas between them.
#include "braid/spec/rank_hosts.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace braid::spec {

std::vector<int> listed_hosts(const std::string& placement, int num_ranks, int num_hosts) {
  std::vector<int> hosts;
  std::istringstream words(placement);
  for (std::string word; std::getline(words, word, ',');) {
    const bool digits =
        !word.empty() && word.size() < 6 && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
    hosts.push_back(digits ? std::stoi(word) : -1);
  }
  const bool fits = static_cast<int>(hosts.size()) == num_ranks &&
                    std::ranges::all_of(hosts, [&](int host) { return host >= 0 && host < num_hosts; }) &&
                    hosts[0] == 0 && std::set<int>(hosts.begin(), hosts.end()).size() == static_cast<size_t>(num_hosts);
  return fits ? hosts : std::vector<int>();
}

}  // namespace braid::spec
