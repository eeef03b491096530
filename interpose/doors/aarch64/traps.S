// SPDX-License-Identifier: Apache-2.0
// See x86_64/traps.S. A trap puts its number into x17; 16 bytes each, as kTrapBytes in traps.cpp has it.

        .text

        .set    trap_number, 0
        .hidden offload_trap_exports
        .globl  offload_trap_exports
        .balign 16
offload_trap_exports:
#define TRAP(symbol, ...)                       \
        .globl  symbol;                         \
        .type   symbol, %function;              \
        .balign 16;                             \
symbol: hint    #34;                            \
        movz    x17, #trap_number;              \
        b       offload_trap;                   \
        .size   symbol, .-symbol;               \
        .set    trap_number, trap_number + 1;
#include "interpose/hooks.def"

        .hidden offload_trap_pool
        .globl  offload_trap_pool
        .type   offload_trap_pool, %function
        .balign 16
offload_trap_pool:
        .rept   1024
        .balign 16
        hint    #34
        movz    x17, #trap_number
        b       offload_trap
        .set    trap_number, trap_number + 1
        .endr
        .balign 16
        .size   offload_trap_pool, .-offload_trap_pool

// All that may carry an argument is kept: x0 to x8, q0 to q7, and the stack.
        .type   offload_trap, %function
        .balign 16
offload_trap:
        .cfi_startproc
        adrp    x16, offload_trap_done
        add     x16, x16, #:lo12:offload_trap_done
        ldrb    w16, [x16, x17]
        cbz     w16, .Lfirst_call
.Lgo_on:
        adrp    x16, offload_trap_targets
        add     x16, x16, #:lo12:offload_trap_targets
        ldr     x16, [x16, x17, lsl #3]
        br      x16
.Lfirst_call:
        stp     x29, x30, [sp, #-224]!
        .cfi_def_cfa_offset 224
        .cfi_offset x29, -224
        .cfi_offset x30, -216
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        stp     x6, x7, [sp, #64]
        stp     x8, x17, [sp, #80]
        stp     q0, q1, [sp, #96]
        stp     q2, q3, [sp, #128]
        stp     q4, q5, [sp, #160]
        stp     q6, q7, [sp, #192]
        mov     w0, w17
        bl      offload_trap_hit
        ldp     q0, q1, [sp, #96]
        ldp     q2, q3, [sp, #128]
        ldp     q4, q5, [sp, #160]
        ldp     q6, q7, [sp, #192]
        ldp     x0, x1, [sp, #16]
        ldp     x2, x3, [sp, #32]
        ldp     x4, x5, [sp, #48]
        ldp     x6, x7, [sp, #64]
        ldp     x8, x17, [sp, #80]
        ldp     x29, x30, [sp], #224
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        b       .Lgo_on
        .cfi_endproc
        .size   offload_trap, .-offload_trap

        .section .note.GNU-stack, "", %progbits
