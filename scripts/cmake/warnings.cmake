# SPDX-License-Identifier: Apache-2.0
add_library(offload_warnings INTERFACE)
target_compile_options(offload_warnings INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Werror -fvisibility=hidden -fno-semantic-interposition)
if(OFFLOAD_SANITIZE)
  target_compile_options(offload_warnings INTERFACE -fsanitize=${OFFLOAD_SANITIZE} -fno-omit-frame-pointer -O1)
  target_link_options(offload_warnings INTERFACE -fsanitize=${OFFLOAD_SANITIZE})
endif()
