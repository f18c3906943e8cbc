// The units of cluster files and tables.
#pragma once

namespace braid::plan {

inline constexpr double kMib = 1 << 20, kGib = 1 << 30;  // bytes
inline constexpr double kGiga = 1e9, kTera = 1e12, kMicro = 1e-6;
inline constexpr double kHour = 3600;  // seconds

}  // namespace braid::plan
