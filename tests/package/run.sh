#!/usr/bin/env bash
# Makes the Debian packages and uses them: the program in a clean root without a compiler, the library from a
# program of 20 lines. usage: run.sh (in a checkout that is built)
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
STUDY=scenarios/studies/llama3_405b_54_days.toml
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
check() { # check WHAT FOUND EXPECTED
  if [ "$2" != "$3" ]; then
    printf '%s: expected %s, found %s\n0 passed, 1 failed\n' "$1" "$3" "$2"
    exit 1
  fi
  passed=$((passed + 1))
}
digest() { grep -o 'digest [0-9a-f]*' | head -1; }
expected=$(build/railyard run $STUDY --replicas 3 --no-estimates | digest)

tools/package >"$folder/packages"
program=$(grep '/railyard_' "$folder/packages")
library=$(grep '/librailyard-dev_' "$folder/packages")

# The library, installed below a folder of one's own.
dpkg-deb -x "$library" "$folder/dev"
cmake -G Ninja -S tests/package -B "$folder/goodput" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$folder/dev/usr" >"$folder/log" 2>&1 && cmake --build "$folder/goodput" >>"$folder/log" 2>&1 ||
  { cat "$folder/log"; echo "0 passed, 1 failed"; exit 1; }
check "goodput from the library" "$("$folder/goodput/goodput" scenarios/hello/first.toml)" \
  "$(build/railyard run scenarios/hello/first.toml --json --no-estimates | /usr/bin/python3 -c 'import json, sys; print("%.17g" % json.load(sys.stdin)["metrics"]["goodput"]["mean"])')"

# What that build read and linked is in the package's dependencies, or theirs, or comes with the compiler.
names() { dpkg-deb -f "$1" Depends | sed 's/([^)]*)//g; s/,//g'; }
apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
  $(names "$library") g++ cmake | grep '^[a-z]' | sort -u >"$folder/brought"
{ ninja -C "$folder/goodput" -t deps | sed -n 's/^ *//p'; ninja -C "$folder/goodput" -t commands | tr ' ' '\n'; } |
  grep '^/usr/.*\.\(h\|hpp\|so\|a\)$' | sort -u | xargs dpkg -S 2>/dev/null | cut -d: -f1 | sort -u >"$folder/used"
check "packages that the library needs and does not depend on" "$(comm -23 "$folder/used" "$folder/brought")" ""

# The program, in a root that has nothing but Debian's package manager. As another user than root there is no such
# root, and the package is unpacked instead.
if [ "$(id -u)" -eq 0 ]; then
  mmdebstrap --quiet --variant=apt --include="$(dpkg-deb -f "$program" Depends | sed 's/([^)]*)//g; s/ //g')" bookworm "$folder/root" >"$folder/log" 2>&1 ||
    { cat "$folder/log"; echo "0 passed, 1 failed"; exit 1; }
  cp "$program" "$folder/root/railyard.deb"
  # With /proc, which the program finds its files by, in a mount namespace of its own.
  run() { unshare -m sh -c 'mount --bind /proc "$0/proc" && exec chroot "$0" "$@"' "$folder/root" "$@"; }
  run dpkg -i /railyard.deb >"$folder/log" 2>&1 || { cat "$folder/log"; echo "0 passed, 1 failed"; exit 1; }
  check "a compiler in the clean root" "$(run which g++ cc clang || true)" ""
else
  dpkg-deb -x "$program" "$folder/root"
  run() { "$folder/root/usr/bin/$1" "${@:2}"; }
fi
share=/usr/share/railyard
[ "$(id -u)" -eq 0 ] || share=$folder/root$share
check "the first study, installed" "$(run railyard run $share/$STUDY --replicas 3 --no-estimates | digest)" "$expected"
run railyard run $share/scenarios/hello/first.toml --db /tmp/out.sqlite --no-estimates >/dev/null
run railyard report /tmp/out.sqlite -o /tmp/out.html >/dev/null
check "a report" "$(run grep -c '</html>' /tmp/out.html)" 1
check "a published table" "$(run railyard verify $share/tests/validation/14_korthikanti_memory_fig1_fig7.csv | grep -c 'memory per GPU')" 1
check "the Python module, installed" "$(RAILYARD=$PWD/build/railyard PYTHONPATH=$folder/root/usr/lib/python3/dist-packages \
  /usr/bin/python3 -c "import railyard, sys; r = railyard.Scenario('$PWD/scenarios/hello/first.toml').run(); print('%.17g' % r.metric('goodput')['mean'][0])")" \
  "$("$folder/goodput/goodput" scenarios/hello/first.toml)"
man=$folder/root/usr/share/man/man1/railyard.1
check "the man page" "$( (zcat "$man.gz" 2>/dev/null || cat "$man") | grep -c '^.SS railyard')" \
  "$(build/railyard --help | sed -n 's/^  \([a-z]\+\) .*/\1/p' | grep -vc bench)"

# Completion, as bash would ask for it.
complete_words() { bash -c 'source tools/packaging/completion.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _railyard; echo "${COMPREPLY[@]}"' - "$@"; }
check "completion of verbs" "$(complete_words build/railyard sens)" sensitivity
check "completion of keys" "$(complete_words build/railyard run x.toml --set job.checkpoint.interv)" job.checkpoint.interval=
check "completion of options" "$(complete_words build/railyard run --replic)" --replicas
echo "$passed passed, 0 failed"
