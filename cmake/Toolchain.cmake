# Warnings, linker, compiler cache and sanitizers: everything about the compiler that is not about a component.

set(cxx_only $<COMPILE_LANGUAGE:CXX>)
add_compile_options($<${cxx_only}:-Wall> $<${cxx_only}:-Wextra> $<${cxx_only}:-Wno-unused-parameter>
  $<${cxx_only}:-Wno-missing-field-initializers> $<${cxx_only}:-fno-math-errno> $<${cxx_only}:-ffp-contract=off>)

# The garbage collector of g++ runs later: two unity batches of tests took 6 and 25 % less processor time, with up to 0.5 GB more memory.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("$<${cxx_only}:--param=ggc-min-expand=300>" "$<${cxx_only}:--param=ggc-min-heapsize=1500000>")
endif()

# A portable base; wider paths are chosen at run time from the processor's feature bits.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options($<${cxx_only}:-march=x86-64-v3>)
endif()

# Since g++ 13 both are part of -O2. Tests compile at -O1, and a precompiled header is used only where such options are the same.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-munroll-only-small-loops BRAID_UNROLLS_SMALL_LOOPS)
if(BRAID_UNROLLS_SMALL_LOOPS)
  add_compile_options($<${cxx_only}:-munroll-only-small-loops> $<${cxx_only}:-mvzeroupper>)
endif()

find_program(BRAID_CCACHE ccache)
if(BRAID_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${BRAID_CCACHE})
endif()

find_program(BRAID_MOLD mold)
if(BRAID_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(BRAID_SANITIZE)
  add_compile_options(-fsanitize=${BRAID_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BRAID_SANITIZE})
  if(BRAID_SANITIZE MATCHES "undefined")
    # Checks of every pointer that is followed or moved take 30 % of the build. What they find where memory is concerned,
    # AddressSanitizer finds; misaligned access is the exception, and goes unseen.
    add_compile_options(-fno-sanitize=null,vptr,object-size,pointer-overflow,alignment)
  endif()
endif()
