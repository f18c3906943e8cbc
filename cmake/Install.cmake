# What cmake --install puts where, in components: `command` (the program, its manual page and completions), `cuda`, `mpi`, and `library` (headers,
# static libraries, and what find_package(braid) and pkg-config read). cpack makes a Debian package of the first (scripts/package).

include(CMakePackageConfigHelpers)
option(BRAID_BUNDLE_TORCH "Install LibTorch's libraries beside the program, under lib/braid; OFF: it looks for them where they are now" OFF)

# share/FOLDER/NAME is what `braid ARGUMENT...` prints.
function(braid_install_printed folder name)
  set(printed ${PROJECT_BINARY_DIR}/printed/${folder})
  install(CODE "
    file(MAKE_DIRECTORY ${printed})
    execute_process(COMMAND $<TARGET_FILE:braid> ${ARGN} OUTPUT_FILE ${printed}/${name} COMMAND_ERROR_IS_FATAL ANY)
    file(INSTALL ${printed}/${name} DESTINATION \${CMAKE_INSTALL_PREFIX}/share/${folder})" COMPONENT command)
endfunction()

install(TARGETS braid RUNTIME DESTINATION bin COMPONENT command)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/braid RENAME copyright COMPONENT command)
braid_install_printed(man/man1 braid.1 man)
braid_install_printed(bash-completion/completions braid completion bash)
braid_install_printed(zsh/site-functions _braid completion zsh)
braid_install_printed(fish/vendor_completions.d braid.fish completion fish)
foreach(name openmpi mpich)
  if(TARGET braid_mpi_${name})
    install(TARGETS braid_mpi_${name} LIBRARY DESTINATION lib/braid COMPONENT mpi)
  endif()
endforeach()
if(TARGET braid_cuda)
  install(TARGETS braid_cuda LIBRARY DESTINATION lib/braid COMPONENT cuda)
endif()
if(BRAID_TORCH AND BRAID_BUNDLE_TORCH)
  set_target_properties(braid PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/braid")
  install(CODE "
    file(GET_RUNTIME_DEPENDENCIES EXECUTABLES $<TARGET_FILE:braid> RESOLVED_DEPENDENCIES_VAR libraries
      POST_EXCLUDE_REGEXES ^/lib ^/usr/lib)
    file(INSTALL \${libraries} DESTINATION \${CMAKE_INSTALL_PREFIX}/lib/braid TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN)"
    COMPONENT command)
elseif(BRAID_TORCH)
  set_target_properties(braid PROPERTIES INSTALL_RPATH ${LibTorch_DIR_FOUND}/lib)
endif()

# The components below braid::core and braid::torch, each after those that it links.
set(core_components base schedule model spec mesh layout plan data tokenize)
set(torch_components device control comm launch param optim sync pipe ckpt module)

# Installs braid::NAME with its headers: braid-NAME.cmake declares it, pkg-config knows it as PACKAGE.
function(braid_install_library name package)
  cmake_parse_arguments(library "" "" "HEADERS;COMPONENTS;OBJECTS" ${ARGN})
  target_sources(braid_${name} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${library_HEADERS})
  set(link "")
  foreach(target ${library_COMPONENTS} ${library_OBJECTS} ${name})
    set_target_properties(braid_${target} PROPERTIES EXPORT_NAME ${target})
    install(TARGETS braid_${target} EXPORT braid_${name} ARCHIVE DESTINATION lib/braid OBJECTS DESTINATION lib/braid
      FILE_SET HEADERS DESTINATION include COMPONENT library)
    if(target IN_LIST library_COMPONENTS)
      string(PREPEND link "-lbraid_${target} ")
    endif()
  endforeach()
  install(EXPORT braid_${name} NAMESPACE braid:: FILE braid-${name}.cmake DESTINATION lib/cmake/braid COMPONENT library)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION lib/pkgconfig COMPONENT library)
endfunction()

braid_with_included_headers(headers ${public_headers})
braid_install_library(core braid HEADERS ${headers} COMPONENTS ${core_components} OBJECTS required_processor)
set(library_targets core)
if(BRAID_TORCH)
  braid_with_included_headers(torch_headers ${public_torch_headers})
  list(REMOVE_ITEM torch_headers ${headers})
  braid_install_library(torch braid-torch HEADERS ${torch_headers} COMPONENTS ${torch_components} OBJECTS passive_waiting)
  list(APPEND library_targets torch)
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/braidConfig.cmake.in ${PROJECT_BINARY_DIR}/braidConfig.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/braidConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/braidConfig.cmake ${PROJECT_BINARY_DIR}/braidConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindPCRE2.cmake ${PROJECT_SOURCE_DIR}/cmake/FindUtf8proc.cmake ${PROJECT_SOURCE_DIR}/cmake/FindLibTorch.cmake
  DESTINATION lib/cmake/braid COMPONENT library)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME braid)
set(CPACK_PACKAGE_CONTACT "The authors of braid")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Plans and draws the training of large models, and prepares its data")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};braid;command;/")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
if(BRAID_TORCH)
  set(CPACK_PACKAGE_NAME braid-torch)
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains models that are too large or too slow for one device, with LibTorch's libraries")
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${LibTorch_DIR_FOUND}/lib)
  set(CPACK_DEBIAN_PACKAGE_PROVIDES braid)
  set(CPACK_DEBIAN_PACKAGE_CONFLICTS braid)
  set(CPACK_DEBIAN_PACKAGE_REPLACES braid)
endif()
if(BRAID_BUNDLE_TORCH OR NOT BRAID_TORCH)
  include(CPack)
endif()
