// Commands to be pasted into a shell, such as the one that takes a run up again.
#pragma once

#include <string>
#include <vector>

namespace braid::cli {

// Words as a shell reads them: those that it would read otherwise are quoted. What comes of it is shown as it is: words
// with control characters or bytes that are no UTF-8 have these as escapes in $'...', which bash, zsh, ksh and POSIX's
// sh of 2024 read, so that nothing needs printable() (text.h), which no shell takes back.
std::string for_the_shell(const std::vector<std::string>& words);

// `program`, `file` and `overrides` as they were given, but for what they say of train.resume, which is `checkpoint`,
// and of train.overwrite. Words that a shell would read otherwise are quoted for it.
std::string resume_command(const std::string& program, const std::string& file,
                           const std::vector<std::string>& overrides, const std::string& checkpoint);

}  // namespace braid::cli
