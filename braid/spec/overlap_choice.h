// The choice of a setting that lets communication run during computation. It never changes results.
#pragma once

#include <array>
#include <string_view>

namespace braid {

// Auto: whichever is faster in the first steps.
enum class OverlapChoice { Auto, On, Off };
constexpr auto words(OverlapChoice) { return std::to_array<std::string_view>({"auto", "on", "off"}); }

}  // namespace braid
