#!/bin/sh
# Run by `meson install`: installs a built file under another name. FILE TARGET-RELATIVE-TO-THE-PREFIX
set -eu
target=$MESON_INSTALL_DESTDIR_PREFIX/$2
mkdir -p "$(dirname "$target")"
install -m 644 "$1" "$target"
