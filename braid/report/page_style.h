// The looks of a run's page, and the few lines of script that show values under the pointer. It knows class names only.
#pragma once

namespace braid::report {

extern const char* const kPageStyle;   // CSS
extern const char* const kPageScript;  // JavaScript; the page is complete without it

}  // namespace braid::report
