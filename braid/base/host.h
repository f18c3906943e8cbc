// The machine at hand. It knows nothing of accelerators.
#pragma once

#include <algorithm>
#include <thread>

namespace braid {

// Cores this process may count on, at least 1.
inline int num_cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace braid
