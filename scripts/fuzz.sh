#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all fuzzers at once, each from its corpus on. An input that breaks something is kept in the build folder, and named.
#
#   scripts/fuzz.sh BUILD_FOLDER [SECONDS for each]
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=$1
seconds=${2:-20}
failures=0

# run NAME CORPUS
run() {
  local name=$1 corpus=$2
  local found=$build/found/$name options runs
  mkdir -p "$found"
  options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -detect_leaks=0 -artifact_prefix="$found/" -print_final_stats=1)
  [ ! -e "tests/fuzz/$name.dict" ] || options+=(-dict="tests/fuzz/$name.dict")
  if ASAN_OPTIONS=detect_leaks=0 "$build/fuzz/fuzz_$name" "${options[@]}" "$found" "$corpus" >"$build/$name.log" 2>&1; then
    runs=$(awk '/stat::number_of_executed_units/ { print $2 }' "$build/$name.log")
    echo "fuzz: $name: nothing found in $runs runs, $(find "$corpus" -type f | wc -l) of them kept"
  else
    tail -n 30 "$build/$name.log" >&2
    echo "fuzz: $name: see above; the input is in $found, the whole output in $build/$name.log" >&2
    return 1
  fi
}

running=()
for corpus in tests/fuzz/corpus/*/; do
  run "$(basename "$corpus")" "$corpus" &
  running+=($!)
done
for one in "${running[@]}"; do
  wait "$one" || failures=$((failures + 1))
done
exit $((failures > 0))
