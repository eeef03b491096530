# SPDX-License-Identifier: Apache-2.0
"""What bench.py measures. Name: unit, target (at most), what it is."""

MEASURES = {
    "torch_fits_time_ratio": ("ratio", 1.03, "a step that fits, with liboffload against without, in instructions; driver and device do the same in both"),
    "torch_fits_host_ratio": ("ratio", 1.1, "the same without the work of driver and device: Python and PyTorch alone"),
    "torch_added_instructions_per_call": ("instructions", None, "the same as a difference, by operation, allocation and free"),
    "torch_step_without_ms": ("ms", None, "processor time of a step without liboffload, the simulated GPU's work included"),
    "torch_step_with_ms": ("ms", None, "the same with it"),
    "torch_launches_per_step": ("count", None, "kernel launches of a step"),
    "torch_allocations_per_step": ("count", None, "allocations of a step"),
    "torch_names_per_launch": ("count", None, "buffers that a launch names, phantoms not among them"),
    "torch_named_share": ("%", None, "the same, of the buffers that live"),
    "torch_phantom_share": ("%", None, "phantoms among all names, when the stack is not emptied"),
    "torch_phantoms_within_4": ("%", None, "of them, where the buffer was used before, those at most 4 launches after its last real use"),
    "torch_phantoms_within_16": ("%", None, "at most 16 launches"),
    "torch_gpt2_small_rounding_waste": ("%", None, "memory mapped beyond what the weights of GPT-2 small need"),
    "torch_capped_peak_of_cap": ("%", 100, "under a cap of 60 %: the most that was mapped, of the cap"),
    "torch_capped_moved_per_step": ("MiB", None, "what left for host memory"),
    "torch_capped_host_waits_per_step": ("count", None, "waits of the program's threads for the GPU once it has begun, all causes, on the virtual clock"),
    "torch_capped_address_waits_per_step": ("count", 0, "of them, for an ordinary eviction or return: an address had to show other memory"),
    "torch_capped_host_wait_ms_per_step": ("ms", None, "how long all of them took, together"),
}
