#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_client.sh PROGRAM right: the client must end with status 0 and say nothing.
# run_client.sh PROGRAM wrong STATUS:WORD...: it must end in one of these ways, WORD being part of what it says. Where the
# order of host and device decides between a report and a fault, both are right.
set -uo pipefail
program=$1 variant=$2
shift 2
said=$("$program" "$variant" 2>&1)
status=$?
if [[ $variant == right ]]; then
  [[ $status -eq 0 && -z $said ]] && exit 0
  printf 'status %d instead of 0 and silence; it said:\n%s\n' "$status" "$said"
  exit 1
fi
for ending in "$@"; do
  [[ $status -eq ${ending%%:*} && $said == *"${ending#*:}"* ]] && exit 0
done
printf 'status %d; expected: %s; it said:\n%s\n' "$status" "$*" "$said"
exit 1
