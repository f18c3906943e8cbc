// Prepares the process of a command before it opens its first file.
#pragma once

namespace braid {

// Opens /dev/null on those of the descriptors 0 to 2 that are closed. Otherwise the next opened file would get such a
// number, and console text would be written into it. Writing to a standard output that was closed still fails. Ignores
// SIGXFSZ: a file that grows past the user's limit gives an IoError (EFBIG), not a signal. Throws IoError if /dev/null
// cannot be opened.
void prepare_process();

}  // namespace braid
