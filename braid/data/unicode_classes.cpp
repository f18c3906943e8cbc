// The table of classes. No file, no pattern.
#include "braid/data/unicode_classes.h"

#include <algorithm>
#include <vector>

#include "braid/data/unicode_ranges.h"

namespace braid {
namespace {

std::vector<CharClass> make_classes() {
  std::vector<CharClass> classes(kNumCodes, CharClass::Other);
  const auto mark = [&](CodeRange range, CharClass value) {
    std::fill(classes.begin() + range.first, classes.begin() + range.last + 1, value);
  };
  for (const CodeRange range : letter_ranges()) mark(range, CharClass::Letter);
  for (const CodeRange range : number_ranges()) mark(range, CharClass::Number);
  // Property White_Space; unchanged since Unicode 6.3.
  constexpr CodeRange kSpaces[] = {{0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                   {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                   {0x205F, 0x205F}, {0x3000, 0x3000}};
  for (const CodeRange range : kSpaces) mark(range, CharClass::Space);
  classes['\r'] = classes['\n'] = CharClass::Newline;
  return classes;
}

}  // namespace

const CharClass* char_classes() {
  static const std::vector<CharClass> classes = make_classes();
  return classes.data();
}

}  // namespace braid
