// SPDX-License-Identifier: Apache-2.0
// See x86_64/dlsym.S.

        .text

// Goes to \otherwise unless the name in x1 is worth a look and the handle is not RTLD_NEXT. Uses w9.
        .macro worth_a_look otherwise
        cmn     x0, #1
        b.eq    \otherwise
        cbz     x1, \otherwise
        ldrb    w9, [x1]
        cmp     w9, #'c'
        b.ne    \otherwise
        ldrb    w9, [x1, #1]
        cmp     w9, #'u'
        b.ne    \otherwise
        ldrb    w9, [x1, #2]
        sub     w9, w9, #'A'
        cmp     w9, #25
        b.hi    \otherwise
        .endm

        .macro jump_through pointer
        adrp    x16, \pointer
        ldr     x16, [x16, #:lo12:\pointer]
        br      x16
        .endm

        .globl  dlsym
        .type   dlsym, %function
        .balign 16
dlsym:
        .cfi_startproc
        hint    #34                     // bti c
        worth_a_look .Lpass_dlsym
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset x29, -32
        .cfi_offset x30, -24
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        mov     x2, x30
        bl      offload_look_up
        mov     x9, x0
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        cbnz    x9, .Lanswer
.Lpass_dlsym:
        jump_through offload_real_dlsym
.Lanswer:
        cmp     x9, #1                  // offload_look_up: there is none
        csel    x0, xzr, x9, eq
        ret
        .cfi_endproc
        .size   dlsym, .-dlsym

        .globl  dlvsym
        .type   dlvsym, %function
        .balign 16
dlvsym:
        .cfi_startproc
        hint    #34
        worth_a_look .Lpass_dlvsym
        stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset x29, -48
        .cfi_offset x30, -40
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        mov     x3, x30
        bl      offload_look_up_version
        mov     x9, x0
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        ldp     x29, x30, [sp], #48
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        cbnz    x9, .Lanswer_version
.Lpass_dlvsym:
        jump_through offload_real_dlvsym
.Lanswer_version:
        mov     x0, x9
        ret
        .cfi_endproc
        .size   dlvsym, .-dlvsym

// Where offload_real_dlsym and offload_real_dlvsym lead before they are known.
        .macro unbound name pointer
        .hidden \name
        .globl  \name
        .type   \name, %function
        .balign 16
\name:
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset x29, -48
        .cfi_offset x30, -40
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        bl      offload_bind_real_dl
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        ldp     x29, x30, [sp], #48
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        jump_through \pointer
        .cfi_endproc
        .size   \name, .-\name
        .endm

        unbound offload_unbound_dlsym, offload_real_dlsym
        unbound offload_unbound_dlvsym, offload_real_dlvsym

        .section .note.GNU-stack, "", %progbits
