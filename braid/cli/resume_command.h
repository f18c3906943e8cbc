// Commands to paste into a shell, such as the one that resumes a run.
#pragma once

#include <string>
#include <vector>

namespace braid::cli {

// Joins words for a shell, and quotes those that it would interpret. Control characters and bytes that are not UTF-8
// are escaped in $'...', which bash, zsh, ksh and the sh of POSIX 2024 read. The result is therefore safe to print
// without printable() (text.h), whose escapes no shell reads.
std::string for_the_shell(const std::vector<std::string>& words);

// Returns the command with `program`, `file` and `overrides` as they were given, except that train.resume is
// `checkpoint` and train.overwrite is left out. Words that a shell would interpret are quoted.
std::string resume_command(const std::string& program, const std::string& file,
                           const std::vector<std::string>& overrides, const std::string& checkpoint);

}  // namespace braid::cli
