#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks at every tracked source: layout (clang-format), bugs (clang-tidy, those changed last first, for at most LINT_SECONDS),
# shell scripts (shellcheck), and the house's own rules. Wants a configured build/.
#
#   scripts/lint.sh [BUILD_FOLDER]
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=${1:-build}
seconds=${LINT_SECONDS:-240}
failures=0

# complain TEXT...: something is wrong.
complain() {
  printf 'lint: %s\n' "$@" >&2
  failures=$((failures + 1))
}

mapfile -t sources < <(git ls-files '*.h' '*.cpp' '*.c' '*.cu' | while read -r file; do
  [ -e "$file" ] && echo "$file"
done)
mapfile -t scripts < <(git ls-files | while read -r file; do
  [ -f "$file" ] && echo "$file"
done | xargs awk 'FNR == 1 && /^#!.*[ \/](ba)?sh$/ { print FILENAME } { nextfile }')

clang-format --dry-run -Werror "${sources[@]}" || complain "clang-format -i the files above"

mapfile -t unlicensed < <(comm -23 <(printf '%s\n' "${sources[@]}" "${scripts[@]}" | sort) \
  <(awk 'FNR <= 3 && /SPDX-License-Identifier: Apache-2.0/ { print FILENAME } FNR == 3 { nextfile }' "${sources[@]}" "${scripts[@]}" | sort))
[ "${#unlicensed[@]}" = 0 ] || complain "${unlicensed[@]/%/ has no licence line}"
mapfile -t long < <(awk 'FNR == 501 { print FILENAME; nextfile }' "${sources[@]}")
[ "${#long[@]}" = 0 ] || complain "${long[@]/%/ is longer than 500 lines: what is the second concept in it?}"
# What is preloaded into anything must not bring the streams' start-up with it.
mapfile -t streams < <(git grep -lE '#include <(iostream|fstream|sstream)>' -- interpose policies profiler ':!interpose/cli')
[ "${#streams[@]}" = 0 ] || complain "streams in the preloaded library: ${streams[*]}"

if command -v shellcheck >/dev/null; then
  [ "${#scripts[@]}" = 0 ] || shellcheck -x "${scripts[@]}" || complain "shellcheck"
fi

if [ -e "$build/compile_commands.json" ]; then
  python3 scripts/tidy.py "$build" "$seconds" || complain "clang-tidy"
else
  complain "$build/compile_commands.json is not there: configure first (make)"
fi

[ "$failures" = 0 ] && echo "lint: nothing found"
exit $((failures > 0))
