// SPDX-License-Identifier: Apache-2.0
#pragma once
// File names from patterns, and files that never overwrite another. Nothing here allocates.

#include <span>
#include <string_view>

namespace offload {

inline constexpr std::size_t kPathBytes = 4096;

// The rank that a launcher gave this process (RANK, LOCAL_RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID
// or PMI_RANK, the first that holds a number), or an empty text.
std::string_view process_rank();

// Replaces %p by the process id, %r by the rank, %h by the host's name and %% by a percent sign.
// Without a rank, %r and the one '.', '-' or '_' that joins it go away ("report.%r.%p.json" gives
// "report.123.json"). False if the result does not fit.
bool expand_pattern(std::string_view pattern, std::span<char> path);

// Makes the folders above `path` that are missing. False, with errno, if that fails.
bool make_parent_folders(const char* path);

// Creates a file for appending that did not exist: `path`, or with .1, .2, ... at its end. What is
// there and is no regular file (a device, a pipe), and /dev/stderr and /dev/stdout wherever they
// lead, are opened as they are; a pipe without a reader is an error, not a wait. Writes the name it
// took into `taken` (of kPathBytes). Returns a descriptor above the standard three, closed on exec,
// or -1 with errno.
int create_new_file(const char* path, std::span<char> taken);

// The three in one. errno is EINVAL if the pattern gives no name at all.
int create_from_pattern(std::string_view pattern, std::span<char> taken);

// What such an error means to whoever wrote the pattern.
const char* file_error_text(int error);

}  // namespace offload
