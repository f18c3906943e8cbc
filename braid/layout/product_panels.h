// The panels by which CPUs multiply 16-bit types that they have no instructions for: in float32, part by part.
#pragma once

#include <cstdint>

namespace braid::layout {

// Elements of the second factor that a product widens at a time: 16 MiB in float32.
inline constexpr int64_t kPanelElements = int64_t{1} << 22;

}  // namespace braid::layout
