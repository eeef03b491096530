#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_client.sh PROGRAM VARIANT STATUS [WORD]: runs a client and compares how it ends. A right client ends with status 0
# and says nothing; a wrong one with STATUS, and WORD on stderr.
set -uo pipefail
program=$1 variant=$2 wanted=$3 word=${4-}
said=$("$program" "$variant" 2>&1)
status=$?
if [[ $status -ne $wanted ]]; then
  printf 'status %d instead of %d; it said:\n%s\n' "$status" "$wanted" "$said"
  exit 1
fi
if [[ -z $word && -n $said ]]; then
  printf 'it should have said nothing, but said:\n%s\n' "$said"
  exit 1
fi
if [[ $said != *"$word"* ]]; then
  printf 'it should have said "%s", but said:\n%s\n' "$word" "$said"
  exit 1
fi
