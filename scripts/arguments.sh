# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What the scripts have in common about their arguments: they source it in front of everything else. `who` is the
# script's name. -h or --help, wherever it is, prints the comment at the script's head, and the script has done nothing.

# shellcheck disable=SC2034
who=${0##*/}

for argument in "$@"; do
  case $argument in
    -h | --help)
      sed -n -e 1,2d -e '/^#/!q' -e 's/^# \{0,1\}//p' "$0"
      exit 0
      ;;
  esac
done

# What is wrong with the arguments. Ends the script, which has done nothing yet.
wrong_usage() {
  echo "$who: error: $*" >&2
  exit 2
}

# takes_none "$@": of a script without arguments.
takes_none() {
  [ $# -eq 0 ] || wrong_usage "unknown argument $1 (known: --help)"
}
