// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel of the start-up probe: adds 1 to each of `count` words, whatever the grid. Written by
// hand as PTX that every device of the last ten years takes.

namespace offload {

inline constexpr const char* kProbeKernelName = "offload_probe";
inline constexpr const char* kProbeKernel = R"(
.version 6.4
.target sm_52
.address_size 64

.visible .entry offload_probe(
    .param .u64 data,
    .param .u32 count
)
{
    .reg .pred  %p<2>;
    .reg .b32   %r<10>;
    .reg .b64   %rd<5>;

    ld.param.u64        %rd1, [data];
    ld.param.u32        %r1, [count];
    cvta.to.global.u64  %rd2, %rd1;
    mov.u32             %r2, %ctaid.x;
    mov.u32             %r3, %ntid.x;
    mov.u32             %r4, %tid.x;
    mad.lo.s32          %r5, %r2, %r3, %r4;
    mov.u32             %r6, %nctaid.x;
    mul.lo.s32          %r7, %r6, %r3;
LOOP:
    setp.ge.u32         %p1, %r5, %r1;
    @%p1 bra            DONE;
    mul.wide.u32        %rd3, %r5, 4;
    add.s64             %rd4, %rd2, %rd3;
    ld.global.u32       %r8, [%rd4];
    add.s32             %r9, %r8, 1;
    st.global.u32       [%rd4], %r9;
    add.s32             %r5, %r5, %r7;
    bra                 LOOP;
DONE:
    ret;
}
)";

}  // namespace offload
