// A run's configuration as HTML tables, what differs from the defaults marked. It judges no values.
#pragma once

#include <string>

namespace braid::report {

// Returns one table for each section of `toml`, in its order, with unknown keys and sections too. Returns the text
// itself if it is no TOML.
std::string config_tables(const std::string& toml);

}  // namespace braid::report
