// A run's configuration as HTML tables, what differs from the defaults marked. It judges no values.
#pragma once

#include <string>

namespace braid {

// One table for each section of `toml`, in its order. Keys and sections that are not known are shown too. When the text
// cannot be read as TOML, the text itself.
std::string config_tables(const std::string& toml);

}  // namespace braid
