# LibTorch's header of Gloo's process group includes headers of Gloo that the wheel does not carry. Empty files stand in
# for them, for the one source that declares what it needs of them.

set(gloo_headers ${PROJECT_BINARY_DIR}/gloo_headers)
foreach(header algorithm common/error context rendezvous/store transport/device)
  if(NOT EXISTS ${gloo_headers}/gloo/${header}.h)
    file(WRITE ${gloo_headers}/gloo/${header}.h "// Made by cmake/GlooHeaders.cmake: empty.\n")
  endif()
endforeach()
set_source_files_properties(${PROJECT_SOURCE_DIR}/braid/comm/gloo/gloo_wire.cpp PROPERTIES
  INCLUDE_DIRECTORIES ${gloo_headers})
