# Finds liburing, which is optional: without it scratch files are read and written by threads.
#
#   Uring::uring   header and library

find_path(Uring_INCLUDE_DIR NAMES liburing.h)
find_library(Uring_LIBRARY NAMES uring)
mark_as_advanced(Uring_INCLUDE_DIR Uring_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Uring
  REQUIRED_VARS Uring_LIBRARY Uring_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "run scripts/setup, or install liburing-dev")

if(Uring_FOUND AND NOT TARGET Uring::uring)
  add_library(Uring::uring UNKNOWN IMPORTED)
  set_target_properties(Uring::uring PROPERTIES IMPORTED_LOCATION ${Uring_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${Uring_INCLUDE_DIR})
endif()
