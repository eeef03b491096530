# SPDX-License-Identifier: Apache-2.0
# mimalloc's static library defines malloc, free, strdup and operator new for the whole program. It is
# linked into one object whose only global names are mi_*, so that it can override nobody's malloc. The program's
# MIMALLOC_* variables are for the program's mimalloc: ours finds an empty environment (interpose/life/heap.cpp).
file(GLOB _mimalloc_archives
     ${CMAKE_BINARY_DIR}/venv/lib/python3*/site-packages/cmeel.prefix/lib*/libmimalloc.a
     ${CMAKE_BINARY_DIR}/venv/lib/python3*/site-packages/cmeel.prefix/lib*/mimalloc-*/libmimalloc.a
     ${CMAKE_SOURCE_DIR}/build/venv/lib/python3*/site-packages/cmeel.prefix/lib*/libmimalloc.a
     ${CMAKE_SOURCE_DIR}/build/venv/lib/python3*/site-packages/cmeel.prefix/lib*/mimalloc-*/libmimalloc.a)
if(_mimalloc_archives)
  list(GET _mimalloc_archives 0 _mimalloc_archive)
else()
  message(FATAL_ERROR "mimalloc's static library not found. Run scripts/bootstrap.sh.")
endif()
file(GLOB_RECURSE _mimalloc_header ${CMAKE_SOURCE_DIR}/build/venv/lib/python3*/site-packages/cmeel.prefix/include/mimalloc.h
                                   ${CMAKE_BINARY_DIR}/venv/lib/python3*/site-packages/cmeel.prefix/include/mimalloc.h)
list(GET _mimalloc_header 0 _mimalloc_header)
get_filename_component(_mimalloc_include ${_mimalloc_header} DIRECTORY)
set(_mimalloc_object ${CMAKE_BINARY_DIR}/mimalloc_local.o)
add_custom_command(OUTPUT ${_mimalloc_object}
  COMMAND ${CMAKE_LINKER} -r --whole-archive ${_mimalloc_archive} -o ${_mimalloc_object}.all
  COMMAND ${CMAKE_OBJCOPY} -w --keep-global-symbol=mi_*
    --redefine-sym environ=offload_no_environment --redefine-sym getenv=offload_no_variable ${_mimalloc_object}.all ${_mimalloc_object}
  DEPENDS ${_mimalloc_archive} VERBATIM)
add_custom_target(mimalloc_local_object DEPENDS ${_mimalloc_object})
add_library(offload_mimalloc INTERFACE)
target_sources(offload_mimalloc INTERFACE ${_mimalloc_object})
target_include_directories(offload_mimalloc SYSTEM INTERFACE ${_mimalloc_include})
add_dependencies(offload_mimalloc mimalloc_local_object)
