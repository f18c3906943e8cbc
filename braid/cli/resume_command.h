// The command that takes a run up again, to be pasted into a shell.
#pragma once

#include <string>
#include <vector>

namespace braid {

// `program`, `file` and `overrides` as they were given, but for what they say of train.resume, which is `checkpoint`,
// and of train.overwrite. Words that a shell would read otherwise are quoted for it.
std::string resume_command(const std::string& program, const std::string& file,
                           const std::vector<std::string>& overrides, const std::string& checkpoint);

}  // namespace braid
