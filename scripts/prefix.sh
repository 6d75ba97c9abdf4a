# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scripts that install below a prefix.

# absolute_prefix PREFIX FROM: prints PREFIX as its caller, in the folder FROM, meant it. A shell expands ~ only at a
# word's begin, and so not in PREFIX=~/x.
absolute_prefix() {
  case $1 in
    /*) echo "$1" ;;
    '~' | '~/'*) echo "$HOME${1#\~}" ;;
    *) echo "$2/$1" ;;
  esac
}

# check_prefix WORD PREFIX: fails if files cannot be made below PREFIX (below DESTDIR, if that is set): better before the
# build than after it.
check_prefix() {
  local folder place
  for folder in bin include lib share; do
    place=${DESTDIR:-}$2/$folder
    until [[ -e $place ]]; do place=$(dirname "$place"); done
    if [[ -d $place && -w $place ]]; then continue; fi
    {
      echo "make $1: this user may not write to $place"
      echo "choose another place, as in: make $1 PREFIX=\$HOME/.local"
      echo "or build as this user and install as root: make $1 DESTDIR=\$PWD/build/image PREFIX=$2 && sudo cp -r build/image/. /"
    } >&2
    return 1
  done
}

# installation_record PREFIX: the file that names what was installed below PREFIX, for make uninstall.
installation_record() {
  echo "build/installed/$(sha256sum <<<"${DESTDIR:-}$1" | cut -c 1-16).txt"
}

# record_installation PREFIX MANIFEST: adds what MANIFEST of CMake names.
record_installation() {
  local record
  record=$(installation_record "$1")
  mkdir -p build/installed
  # CMake writes no newline behind the last name.
  { if [[ -f $record ]]; then cat "$record"; fi && cat "$2" && echo; } | sort -u >"$record.new"
  mv "$record.new" "$record"
}
