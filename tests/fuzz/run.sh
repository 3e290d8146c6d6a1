#!/usr/bin/env bash
# Fuzzes scenarios for 20 seconds from the corpus: run.sh PATH_TO_railyard_fuzz_scenario [libFuzzer options]
# A failing input and the log stay in a temporary folder, whose path is printed.
set -euo pipefail
if [ $# -lt 1 ] || [ ! -x "$1" ]; then
  echo "usage: run.sh PATH_TO_railyard_fuzz_scenario: ${1-nothing} is not a program; build it with -DRAILYARD_FUZZ=ON" >&2
  exit 2
fi
FOLDER="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
BINARY="$(readlink -f "$1")"
shift
TEMPORARY="$(mktemp -d)"
# A copy, because libFuzzer adds what it finds to the corpus.
cp -r "$FOLDER/corpus" "$TEMPORARY/corpus"

if ! "$BINARY" -seed=1 -max_total_time=20 -timeout=10 -max_len=4096 -rss_limit_mb=2048 \
    -dict="$FOLDER/dictionary.txt" -artifact_prefix="$TEMPORARY/" -print_final_stats=1 "$@" \
    "$TEMPORARY/corpus" >"$TEMPORARY/log" 2>&1; then
  tail -n 60 "$TEMPORARY/log"
  echo "fuzz: failed; the input is in $TEMPORARY"
  exit 1
fi
EXECUTIONS="$(sed -n 's/^stat::number_of_executed_units: *//p' "$TEMPORARY/log")"
rm -rf "$TEMPORARY"
# No number, or a small one, means that nothing was tried.
if [ "${EXECUTIONS:-0}" -lt 1 ]; then
  echo "fuzz: nothing was executed"
  exit 1
fi
echo "fuzz: $EXECUTIONS executions, no failure"
