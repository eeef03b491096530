#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what liboffload costs and writes build/bench.json; `make bench`. What is measured, and how, and what
# the numbers mean: tests/bench/README.md.
#
#   scripts/bench.sh [--build FOLDER] [--json FILE] [--quick]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
exec python3 "$root/tests/bench/bench.py" --build "$root/build" "$@"
