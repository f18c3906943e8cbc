// Prepares the process of a command, before it opens its first file.
#pragma once

namespace braid {

// Opens those of the descriptors 0 to 2 that are closed on /dev/null: else the next file gets the number, and console
// text is written into it. Writing to a standard output that was closed fails as before. Ignores SIGXFSZ, so that a
// file that grows past the limit of the user is an IoError (EFBIG) and no signal. Throws IoError if /dev/null cannot be
// opened.
void prepare_process();

}  // namespace braid
