#!/bin/sh
# Run by `meson install`: a file that was built, under another name. FILE TARGET-SEEN-FROM-THE-PREFIX
set -eu
target=$MESON_INSTALL_DESTDIR_PREFIX/$2
mkdir -p "$(dirname "$target")"
install -m 644 "$1" "$target"
