#!/bin/sh
# One object of all that the public calls need, in which every other symbol is local: a program that links libwattle.a
# may have functions of any name.
# usage: make_archive.sh libwattle.syms OBJCOPY AR libwattle.a FROM.a,FROM.a COMPILER...
set -eu
symbols=$1 objcopy=$2 ar=$3 out=$4 libraries=$(echo "$5" | tr , ' ')
shift 5
names=$(sed -e '/^#/d' -e '/^$/d' "$symbols")
mkdir -p "$out.p"
# shellcheck disable=SC2086
"$@" -r -nostdlib -o "$out.p/wattle.o" $(printf -- '-Wl,-u,%s ' $names) $libraries
printf '%s\n' $names >"$out.p/keep"
"$objcopy" --keep-global-symbols="$out.p/keep" "$out.p/wattle.o"
rm -f "$out"
"$ar" rcsD "$out" "$out.p/wattle.o"
