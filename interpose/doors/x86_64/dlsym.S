// SPDX-License-Identifier: Apache-2.0
// dlsym and dlvsym as the program calls them. What is not ours is passed on by a jump, so that the C library sees the
// caller's own return address, which decides RTLD_NEXT and RTLD_DEFAULT. Only names spelled "cu" and a capital letter are
// looked at further, by offload_look_up (dlsym.cpp).

        .text

// Leaves the flag "equal" if %rsi is a name worth a look and the handle is not RTLD_NEXT. Uses %eax.
        .macro worth_a_look otherwise
        cmpq    $-1, %rdi
        je      \otherwise
        testq   %rsi, %rsi
        je      \otherwise
        cmpb    $'c', (%rsi)
        jne     \otherwise
        cmpb    $'u', 1(%rsi)
        jne     \otherwise
        movzbl  2(%rsi), %eax
        subl    $'A', %eax
        cmpl    $25, %eax
        ja      \otherwise
        .endm

        .globl  dlsym
        .type   dlsym, @function
        .balign 16
dlsym:
        .cfi_startproc
        endbr64
        worth_a_look .Lpass_dlsym
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        movq    24(%rsp), %rdx
        call    offload_look_up
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        jne     .Lanswer
.Lpass_dlsym:
        jmp     *offload_real_dlsym(%rip)
.Lanswer:
        cmpq    $1, %rax        // offload_look_up: there is none
        je      .Lnone
        ret
.Lnone:
        xorl    %eax, %eax
        ret
        .cfi_endproc
        .size   dlsym, .-dlsym

        .globl  dlvsym
        .type   dlvsym, @function
        .balign 16
dlvsym:
        .cfi_startproc
        endbr64
        worth_a_look .Lpass_dlvsym
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        movq    24(%rsp), %rcx
        call    offload_look_up_version
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        jne     .Lanswer_version
.Lpass_dlvsym:
        jmp     *offload_real_dlvsym(%rip)
.Lanswer_version:
        ret
        .cfi_endproc
        .size   dlvsym, .-dlvsym

// Where offload_real_dlsym and offload_real_dlvsym lead before they are known.
        .hidden offload_unbound_dlsym
        .globl  offload_unbound_dlsym
        .type   offload_unbound_dlsym, @function
        .balign 16
offload_unbound_dlsym:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    offload_bind_real_dl
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        jmp     *offload_real_dlsym(%rip)
        .cfi_endproc
        .size   offload_unbound_dlsym, .-offload_unbound_dlsym

        .hidden offload_unbound_dlvsym
        .globl  offload_unbound_dlvsym
        .type   offload_unbound_dlvsym, @function
        .balign 16
offload_unbound_dlvsym:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        call    offload_bind_real_dl
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        jmp     *offload_real_dlvsym(%rip)
        .cfi_endproc
        .size   offload_unbound_dlvsym, .-offload_unbound_dlvsym

        .section .note.GNU-stack, "", @progbits
