# Finds the header of xxHash, which holds all of it: compiled in, it uses the instructions that braid is compiled for.
#
#   XxHash::header

find_path(XxHash_INCLUDE_DIR NAMES xxhash.h)
mark_as_advanced(XxHash_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(XxHash
  REQUIRED_VARS XxHash_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "run scripts/setup, or install libxxhash-dev")

if(XxHash_FOUND AND NOT TARGET XxHash::header)
  add_library(XxHash::header INTERFACE IMPORTED)
  set_target_properties(XxHash::header PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${XxHash_INCLUDE_DIR})
endif()
