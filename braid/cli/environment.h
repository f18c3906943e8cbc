// The time, host and software of a run, as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace braid::cli {

// Name and value: started (UTC), host, system, processor, cores, memory, braid, compiler. What the system does not say
// is left out.
std::vector<std::pair<std::string, std::string>> environment_facts();

double wall_seconds();  // since 1970

}  // namespace braid::cli
