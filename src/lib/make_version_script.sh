#!/bin/sh
# The linker's view of the symbol list.
# usage: make_version_script.sh libwattle.syms libwattle.map
set -eu
{
	echo 'WATTLE_0 {'
	echo 'global:'
	sed -e '/^#/d' -e '/^$/d' -e 's/$/;/' "$1"
	echo 'local: *;'
	echo '};'
} >"$2"
