# Sourced by tools/railyard and tools/test: where things are, and how missing packages are installed.
# Needs bash. Sets ROOT.

ROOT="$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)"

# What the program is built with. libyaml reads topology.yaml and NeMo's configurations, with the lines of their keys;
# muParser reads the arithmetic over a table's columns; pugixml reads NCCL's topologies, with the place of what is in them;
# zlib unpacks traces of profilers.
BUILD_PACKAGES=(cmake ninja-build g++ ccache libboost-dev libboost-program-options-dev
  libtomlplusplus-dev libfmt-dev librandom123-dev libsqlite3-dev nlohmann-json3-dev libcsv-dev
  libprotobuf-dev protobuf-compiler libeigen3-dev libyaml-dev libmuparser-dev libpugixml-dev zlib1g-dev)
# What its tests need besides: the framework, readers of results, a browser for the report, what executes notebooks, and the
# real Slurm that sweeps are sent to.
TEST_PACKAGES=(doctest-dev sqlite3 python3 git
  python3-jsonschema chromium python3-pandas python3-matplotlib python3-nbconvert python3-ipykernel
  slurm-wlm munge)
# A second compiler with its sanitizers and fuzzer.
SECOND_COMPILER_PACKAGES=(clang libclang-rt-14-dev)
# What packages are made with, and the clean root that they are tried in.
PACKAGE_PACKAGES=(help2man dpkg-dev file fakeroot mmdebstrap)
# Rivals that the benchmarks run against; never in the product.
BENCH_PACKAGES=(libsimgrid-dev libns3-dev)

say() { printf 'railyard: %s\n' "$*" >&2; }

# need_packages WHY PACKAGE...: installs those that are missing.
need_packages() {
  local why=$1 missing=() package
  shift
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  say "$why: installing the Debian packages ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      say "can't install: not root, and there is no sudo. As root, run:"
      say "    apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
      exit 2
    fi
    as_root=(sudo)
  fi
  if ! command -v apt-get >/dev/null; then
    say "can't install: there is no apt-get here. railyard is built on Debian 12; elsewhere, install"
    say "    ${missing[*]}"
    say "by their names there, and run: cmake -G Ninja -B build && ninja -C build"
    exit 2
  fi
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq &&
         DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq \
           --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    say "the installation failed (whole log: $log). Check the network and the package sources, then run:"
    say "    apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    exit 2
  fi
  rm -f "$log"
}

# The report's page is bundled from npm's packages. Any node that is there will do.
need_npm() {
  command -v npm >/dev/null && command -v node >/dev/null || need_packages "the report's page is bundled by npm" nodejs npm
}

# show_build EXPECTED: reads ninja's lines "[done/total] what" and shows how far the build is, and for how long it has run of
# the seconds that it is expected to take: one line that moves every second on a terminal, one a minute elsewhere.
show_build() {
  local expected=$1 line finished=0 total=0 next=0 status elapsed shown
  local start=$SECONDS
  while :; do
    status=0
    IFS= read -r -t 1 line || status=$?
    [ "$status" -eq 0 ] || [ "$status" -gt 128 ] || break  # above 128: nothing within a second
    if [ "$status" -eq 0 ] && [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      finished=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    fi
    [ "$total" -gt 0 ] || continue
    elapsed=$((SECONDS - start))
    shown="$finished/$total pieces, $elapsed s of about $((elapsed > expected ? elapsed + 5 : expected)) s"
    if [ -t 2 ]; then
      printf '\r\033[Krailyard: building [%-30s] %s' \
        "$(printf '%*s' $((30 * (elapsed < expected ? elapsed : expected) / expected)) '' | tr ' ' '#')" "$shown" >&2
    elif [ "$elapsed" -ge "$next" ]; then
      say "building: $shown"
      next=$((elapsed + 60))
    fi
  done
  [ ! -t 2 ] || printf '\r\033[K' >&2
}

# build FOLDER TARGET CPU_SECONDS CMAKE_ARGUMENTS...: configures when needed and builds what takes about so many CPU seconds;
# says how far it is, and all that the compilers said when something is wrong.
build() {
  local folder=$1 target=$2 expected=$(($3 / $(nproc) + 5)) log
  shift 3
  log=$(mktemp)
  if ! cmake -G Ninja -S "$ROOT" -B "$folder" "$@" >"$log" 2>&1 ||
     ! cmake --build "$folder" --target "$target" -j "$(nproc)" 2>&1 | tee -a "$log" | show_build "$expected"; then
    cat "$log" >&2
    rm -f "$log"
    say "the build failed"
    exit 2
  fi
  rm -f "$log"
}
