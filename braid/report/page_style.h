// The style of a run's page, and a short script that shows values under the pointer. It refers to class names only.
#pragma once

namespace braid::report {

extern const char* const kPageStyle;   // CSS
extern const char* const kPageScript;  // JavaScript; the page is complete without it

}  // namespace braid::report
