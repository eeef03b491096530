// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every kernel of the training program.

#include "tests/workloads/kernels/attention.cuh"
#include "tests/workloads/kernels/elementwise.cuh"
#include "tests/workloads/kernels/layer_norm.cuh"
#include "tests/workloads/kernels/linear.cuh"
#include "tests/workloads/kernels/tokens.cuh"
