// Commands to be pasted into a shell, such as the one that takes a run up again.
#pragma once

#include <string>
#include <vector>

namespace braid {

// Words as a shell reads them: those that it would read otherwise are quoted.
std::string for_the_shell(const std::vector<std::string>& words);

// `program`, `file` and `overrides` as they were given, but for what they say of train.resume, which is `checkpoint`,
// and of train.overwrite. Words that a shell would read otherwise are quoted for it.
std::string resume_command(const std::string& program, const std::string& file,
                           const std::vector<std::string>& overrides, const std::string& checkpoint);

}  // namespace braid
