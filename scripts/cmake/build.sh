# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# What the scripts that build have in common. `who` is their name (scripts/arguments.sh); they set `log`, and stand in the
# tree's root.

fail() {
  echo "$who: error: $*" >&2
  exit 1
}

# rnic_build PRESET FOLDER WHAT [OPTION ...] [-- BUILD_OPTION ...]: packages, then configures and builds the preset in
# its FOLDER. WHAT is said of the build; OPTIONs are cmake's, BUILD_OPTIONs those of cmake --build. Ends the script when
# something fails.
rnic_build() {
  preset=$1 folder=$2 what=$3
  shift 3
  case $PWD in
    *[[:space:]]*) fail "Verilator cannot build below a path with a space in it: $PWD" ;;
  esac
  scripts/setup || exit 1
  { mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ]; } || fail "cannot write to $folder/"
  echo "$who: configuring $folder (log: $log)"
  fresh=""
  made_for=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$folder/CMakeCache.txt" 2>/dev/null || true)
  # shellcheck disable=SC3013
  if [ -n "$made_for" ] && ! [ "$made_for" -ef . ]; then
    echo "$who: $folder belongs to $made_for, starting it afresh"
    fresh="--fresh"
    rm -f "$folder/.ninja_deps" "$folder/.ninja_log"
  fi
  options=""
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options="$options $1"
    shift
  done
  [ $# -eq 0 ] || shift
  # shellcheck disable=SC2086
  cmake --preset "$preset" ${fresh:+"$fresh"} $options >"$log" 2>&1 ||
    fail "configuring failed, see $log: $(grep -m1 -i 'error' "$log" || true)"
  echo "$who: building $what"
  cmake --build "$folder" "$@" >>"$log" 2>&1 ||
    fail "building failed, see $log: $(grep -m1 'error: ' "$log" || grep -m1 'FAILED' "$log" || true)"
}
