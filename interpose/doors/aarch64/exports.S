// SPDX-License-Identifier: Apache-2.0
// See x86_64/exports.S.

        .text
#define HOOK(symbol, ...)                                   \
        .globl  symbol;                                     \
        .type   symbol, %function;                          \
        .balign 16;                                         \
symbol: hint    #34;                                        \
        adrp    x16, offload_hook_##symbol;                 \
        ldr     x16, [x16, #:lo12:offload_hook_##symbol];   \
        br      x16;                                        \
        .size   symbol, .-symbol;
#include "interpose/hooks.def"

        .section .note.GNU-stack, "", %progbits
