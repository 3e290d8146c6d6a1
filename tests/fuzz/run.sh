#!/usr/bin/env bash
# Fuzzes one reader from its corpus: run.sh PATH/railyard_fuzz_READER RUNS [libFuzzer options]
# Inputs are counted, not seconds: a fast machine tries the same ones as a slow machine. A long search
# adds -seed=0, which takes another one each time.
# A failing input and the log stay in a temporary folder, whose path is printed.
set -euo pipefail
if [ $# -lt 2 ] || [ ! -x "$1" ]; then
  echo "usage: run.sh PATH/railyard_fuzz_READER RUNS: ${1-nothing} is not a program; build it with -DRAILYARD_SANITIZE=ON" >&2
  exit 2
fi
FOLDER="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
BINARY="$(readlink -f "$1")"
RUNS=$2
shift 2
READER="$(basename "$BINARY")"
READER="${READER#railyard_fuzz_}"
TEMPORARY="$(mktemp -d)"
mkdir "$TEMPORARY/corpus"
# Copies, because libFuzzer adds what it finds to the corpus.
[ -d "$FOLDER/corpus/$READER" ] && cp -r "$FOLDER/corpus/$READER/." "$TEMPORARY/corpus"
DICTIONARY=()
[ -f "$FOLDER/$READER.dictionary" ] && DICTIONARY=("-dict=$FOLDER/$READER.dictionary")

if ! "$BINARY" -seed=1 -runs="$RUNS" -timeout=10 -max_len=4096 -rss_limit_mb=2048 \
    "${DICTIONARY[@]}" -artifact_prefix="$TEMPORARY/" -print_final_stats=1 "$@" \
    "$TEMPORARY/corpus" >"$TEMPORARY/log" 2>&1; then
  tail -n 60 "$TEMPORARY/log"
  echo "fuzz: $READER failed; the input is in $TEMPORARY"
  exit 1
fi
EXECUTIONS="$(sed -n 's/^stat::number_of_executed_units: *//p' "$TEMPORARY/log")"
rm -rf "$TEMPORARY"
# No number, or a small one, means that nothing was tried.
if [ "${EXECUTIONS:-0}" -lt 1 ]; then
  echo "fuzz: nothing was executed"
  exit 1
fi
echo "fuzz: $READER, $EXECUTIONS executions, no failure"
