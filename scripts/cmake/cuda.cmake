# SPDX-License-Identifier: Apache-2.0
# Finds CUDA's headers and nvcc: CUDA_HOME, nvcc on PATH, the usual place, or NVIDIA's packages in the
# virtual environment that scripts/bootstrap.sh makes. Nothing links a CUDA library.
file(GLOB _venv_cuda ${CMAKE_BINARY_DIR}/venv/lib/python3*/site-packages/nvidia/cu13
                     ${CMAKE_SOURCE_DIR}/build/venv/lib/python3*/site-packages/nvidia/cu13)
find_program(_nvcc_on_path nvcc)
if(_nvcc_on_path)
  get_filename_component(_nvcc_real ${_nvcc_on_path} REALPATH)
  get_filename_component(_nvcc_bin ${_nvcc_real} DIRECTORY)
  get_filename_component(_nvcc_root ${_nvcc_bin} DIRECTORY)
endif()
set(_roots $ENV{CUDA_HOME} ${_nvcc_root} /usr/local/cuda ${_venv_cuda})
find_path(OFFLOAD_CUDA_INCLUDE cuda.h PATHS ${_roots} PATH_SUFFIXES include NO_DEFAULT_PATH)
find_program(OFFLOAD_NVCC nvcc PATHS ${_roots} PATH_SUFFIXES bin NO_DEFAULT_PATH)
if(NOT OFFLOAD_CUDA_INCLUDE)
  message(FATAL_ERROR "cuda.h not found. Run scripts/bootstrap.sh, or set CUDA_HOME to a CUDA 13 toolkit.")
endif()
add_library(cuda_headers INTERFACE)
target_include_directories(cuda_headers SYSTEM INTERFACE ${OFFLOAD_CUDA_INCLUDE})
