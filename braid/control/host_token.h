// The token of jobs that stay on one host, which their commands make themselves: a file that only their user may read.
// All such jobs of a user share it; what they are told apart by is the address of node 0 (job_keys.h).
#pragma once

#include <string>

#include "braid/control/job_token.h"

namespace braid::control {

// The folder of the file, named for the user's number: in /tmp, which all processes of a host see. XDG_RUNTIME_DIR is
// set for some of a user's processes and not for others, such as those of cron and sshd: they would have two tokens.
std::string host_token_folder();

// The token in `folder`. Makes the folder (mode 0700) and the file (mode 0600) where they are missing; of processes
// that do so at the same time all get the same token. Throws ConfigError where the folder is a link, belongs to
// somebody else or is open to others, or the file is unfit as token_of_file() says; IoError where they cannot be made.
JobToken token_of_host(const std::string& folder);

}  // namespace braid::control
