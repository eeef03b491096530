// SPDX-License-Identifier: Apache-2.0
// Traps: code that keeps every argument, reports the call, and goes on to the real entry (traps.h).

        .text

// A trap puts its number into %r11 and goes on to offload_trap. The exported ones come first, in the order of
// hooks.def; a pool for entries met at run time follows (kPoolSize in traps.h). 16 bytes each.
        .set    trap_number, 0
        .hidden offload_trap_exports
        .globl  offload_trap_exports
        .balign 16
offload_trap_exports:
#define TRAP(symbol, ...)                       \
        .globl  symbol;                         \
        .type   symbol, @function;              \
        .balign 16;                             \
symbol: endbr64;                                \
        movl    $trap_number, %r11d;            \
        jmp     offload_trap;                   \
        .size   symbol, .-symbol;               \
        .set    trap_number, trap_number + 1;
#include "interpose/hooks.def"

        .hidden offload_trap_pool
        .globl  offload_trap_pool
        .type   offload_trap_pool, @function
        .balign 16
offload_trap_pool:
        .rept   1024
        .balign 16
        endbr64
        movl    $trap_number, %r11d
        jmp     offload_trap
        .set    trap_number, trap_number + 1
        .endr
        .balign 16
        .size   offload_trap_pool, .-offload_trap_pool

// %r11: number of the trap. All that may carry an argument is kept: rdi, rsi, rdx, rcx, r8, r9, rax, xmm0 to xmm7, and
// the stack.
        .type   offload_trap, @function
        .balign 16
offload_trap:
        .cfi_startproc
        leaq    offload_trap_done(%rip), %r10
        cmpb    $0, (%r10,%r11)
        je      .Lfirst_call
.Lgo_on:
        leaq    offload_trap_targets(%rip), %r10
        jmp     *(%r10,%r11,8)
.Lfirst_call:
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        pushq   %rcx
        pushq   %r8
        pushq   %r9
        pushq   %rax
        pushq   %r11
        subq    $128, %rsp
        movaps  %xmm0, (%rsp)
        movaps  %xmm1, 16(%rsp)
        movaps  %xmm2, 32(%rsp)
        movaps  %xmm3, 48(%rsp)
        movaps  %xmm4, 64(%rsp)
        movaps  %xmm5, 80(%rsp)
        movaps  %xmm6, 96(%rsp)
        movaps  %xmm7, 112(%rsp)
        movl    %r11d, %edi
        call    offload_trap_hit
        movaps  (%rsp), %xmm0
        movaps  16(%rsp), %xmm1
        movaps  32(%rsp), %xmm2
        movaps  48(%rsp), %xmm3
        movaps  64(%rsp), %xmm4
        movaps  80(%rsp), %xmm5
        movaps  96(%rsp), %xmm6
        movaps  112(%rsp), %xmm7
        addq    $128, %rsp
        popq    %r11
        popq    %rax
        popq    %r9
        popq    %r8
        popq    %rcx
        popq    %rdx
        popq    %rsi
        popq    %rdi
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        jmp     .Lgo_on
        .cfi_endproc
        .size   offload_trap, .-offload_trap

        .section .note.GNU-stack, "", @progbits
