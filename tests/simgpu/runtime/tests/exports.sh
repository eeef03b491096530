#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# exports.sh LIBRARY HEADER: what the library shows to the world. Every function that the public header declares is there,
# in the version node that programs built by nvcc ask for, and nothing of the driver is linked.
set -euo pipefail
library=$1
header=$2
status=0

exported=$(nm -D --defined-only "$library" | awk '$2 == "T" {print $3}')
declared=$(grep -oE 'CUDARTAPI(_CDECL)? +cuda[A-Za-z0-9_]+\(' "$header" | grep -oE 'cuda[A-Za-z0-9_]+' | sed 's/$/@@libcudart.so.13/')
missing=$(comm -23 <(sort -u <<<"$declared") <(sort -u <<<"$exported"))
if [[ -n $missing ]]; then
  printf 'missing, or in another version node:\n%s\n' "$missing"
  status=1
fi

if grep -vE '^(__)?cuda[A-Z][A-Za-z0-9_]*@@libcudart\.so\.13$' <<<"$exported"; then
  echo "the names above are exported and should not be"
  status=1
fi
if nm -D --undefined-only "$library" | grep -E ' cu[A-Z]'; then
  echo "the driver's names above are linked directly"
  status=1
fi
if readelf -d "$library" | grep NEEDED | grep -i cuda; then
  echo "a CUDA library is linked"
  status=1
fi
readelf -d "$library" | grep -q 'SONAME.*\[libcudart.so.13\]' || { echo "wrong SONAME"; status=1; }
exit $status
