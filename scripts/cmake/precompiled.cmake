# SPDX-License-Identifier: Apache-2.0
# Half of the time that a source takes is the standard library's headers. They are compiled once for each way in which sources are
# compiled, and read back. Every source still includes what it uses: clang-tidy and builds with clang read no compiled headers.
#
# Only with GCC, which lets a source differ from the compiled headers in macros and in optimisation; and not under a compiler launcher,
# because caches do not know them.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

# offload_compile_headers(way OPTIONS options... LIBRARIES targets... HEADERS headers...)
# The standard headers and these, for sources that are compiled with these options.
function(offload_compile_headers way)
  cmake_parse_arguments(way "" "" "OPTIONS;LIBRARIES;HEADERS" ${ARGN})
  set(_nothing ${CMAKE_BINARY_DIR}/precompiled/${way}.cpp)
  file(WRITE ${_nothing} "")
  add_library(offload_headers_${way} OBJECT EXCLUDE_FROM_ALL ${_nothing})
  target_link_libraries(offload_headers_${way} PRIVATE offload_warnings ${way_LIBRARIES})
  target_compile_options(offload_headers_${way} PRIVATE ${way_OPTIONS})
  target_precompile_headers(offload_headers_${way} PRIVATE
    <algorithm> <atomic> <condition_variable> <cstdint> <cstdio> <cstdlib> <cstring> <deque> <functional> <map> <memory> <mutex>
    <string> <string_view> <utility> <vector> ${way_HEADERS})
endfunction()

# offload_precompiled(targets... AS way)
function(offload_precompiled)
  cmake_parse_arguments(precompiled "" "AS" "" ${ARGN})
  foreach(_target ${precompiled_UNPARSED_ARGUMENTS})
    target_precompile_headers(${_target} REUSE_FROM offload_headers_${precompiled_AS})
  endforeach()
endfunction()

offload_compile_headers(library)
offload_compile_headers(preloaded OPTIONS -fno-exceptions -fno-rtti)
