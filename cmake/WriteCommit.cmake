# cmake -DSOURCE_DIR=DIR -DOUT=FILE -P WriteCommit.cmake: writes the source of build_commit() (braid/cli/version.h). A file
# that says the same already is left alone.
#
# Only a checkout of braid itself has a commit: in a folder of somebody else's repository git would name theirs.

set(commit "")
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --show-prefix
  OUTPUT_VARIABLE prefix RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT failed AND prefix STREQUAL "")
  execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --exclude=* --abbrev=12 "--dirty= with changes"
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[
// Made by cmake/WriteCommit.cmake.
#include "braid/cli/version.h"

const char* braid::cli::build_commit() { return "@commit@"; }
]] @ONLY)
