// SPDX-License-Identifier: Apache-2.0
// The driver's names as liboffload exports them, for libraries that link libcuda directly. Each hooked name jumps to its
// wrapper (a pointer that hooks/define.h makes), so that wrappers see the program's return address. Trapped names are in
// traps.S.

        .text
#define HOOK(symbol, ...)                       \
        .globl  symbol;                         \
        .type   symbol, @function;              \
        .balign 16;                             \
symbol: endbr64;                                \
        jmp     *offload_hook_##symbol(%rip);   \
        .size   symbol, .-symbol;
#include "interpose/hooks.def"

        .section .note.GNU-stack, "", @progbits
