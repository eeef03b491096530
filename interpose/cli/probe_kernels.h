// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel of `offload doctor --probe`: adds 1 to each of `count` words, `passes` times over. PTX
// by hand, so that no compiler is needed where it runs.

namespace offload::cli {

inline constexpr const char* kAddPasses = R"(
.version 6.4
.target sm_52
.address_size 64

.visible .entry add_passes(
    .param .u64 words,
    .param .u32 count,
    .param .u32 passes
)
{
    .reg .pred  %p<3>;
    .reg .b32   %r<13>;
    .reg .b64   %rd<5>;

    ld.param.u64        %rd1, [words];
    ld.param.u32        %r1, [count];
    ld.param.u32        %r10, [passes];
    cvta.to.global.u64  %rd2, %rd1;
    mov.u32             %r2, %ctaid.x;
    mov.u32             %r3, %ntid.x;
    mov.u32             %r4, %tid.x;
    mad.lo.s32          %r5, %r2, %r3, %r4;
    mov.u32             %r6, %nctaid.x;
    mul.lo.s32          %r7, %r6, %r3;
PASS:
    setp.eq.u32         %p2, %r10, 0;
    @%p2 bra            DONE;
    mov.u32             %r11, %r5;
LOOP:
    setp.ge.u32         %p1, %r11, %r1;
    @%p1 bra            NEXT;
    mul.wide.u32        %rd3, %r11, 4;
    add.s64             %rd4, %rd2, %rd3;
    ld.volatile.global.u32  %r8, [%rd4];
    add.s32             %r9, %r8, 1;
    st.volatile.global.u32  [%rd4], %r9;
    add.s32             %r11, %r11, %r7;
    bra                 LOOP;
NEXT:
    sub.s32             %r10, %r10, 1;
    bra                 PASS;
DONE:
    ret;
}
)";

}  // namespace offload::cli
