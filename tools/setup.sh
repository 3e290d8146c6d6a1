# Sourced by tools/railyard and tools/test: where things are, and how missing packages are installed.
# Needs bash. Sets ROOT.

ROOT="$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)"

# What the program is built with.
BUILD_PACKAGES=(cmake ninja-build g++ ccache libboost-dev libboost-program-options-dev
  libtomlplusplus-dev libfmt-dev librandom123-dev libsqlite3-dev nlohmann-json3-dev libcsv-dev
  libprotobuf-dev protobuf-compiler libeigen3-dev)
# What its tests need besides: the framework, a second compiler with its fuzzer, readers of results, a browser
# for the report, what executes notebooks, and the real Slurm that sweeps are sent to.
TEST_PACKAGES=(doctest-dev clang libclang-rt-14-dev sqlite3 python3 git
  python3-jsonschema chromium python3-pandas python3-matplotlib python3-nbconvert python3-ipykernel
  slurm-wlm munge)
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

# build FOLDER CMAKE_ARGUMENTS...: configures when needed and builds; quiet unless something is wrong.
build() {
  local folder=$1 log
  shift
  log=$(mktemp)
  if ! { cmake -G Ninja -S "$ROOT" -B "$folder" "$@" && cmake --build "$folder"; } >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    say "the build failed"
    exit 2
  fi
  rm -f "$log"
}
