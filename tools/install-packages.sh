#!/bin/sh
# Installs missing packages of the named groups of packaging/packages.txt. Does nothing, and needs no rights, when all are
# installed.
set -eu

list=$(dirname "$0")/../packaging/packages.txt
if [ $# -eq 0 ]; then
	echo "usage: $0 GROUP...   groups: $(awk '!/^#/ && NF { print $1 }' "$list" | sort -u | tr '\n' ' ')" >&2
	exit 2
fi

wanted=
for group in "$@"; do
	packages=$(awk -v group="$group" '!/^#/ && $1 == group { print $2 }' "$list")
	if [ -z "$packages" ]; then
		echo "install-packages: no group '$group' in $list" >&2
		exit 2
	fi
	wanted="$wanted $packages"
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "install-packages: this is not a Debian-like system; please see to it that these are there:" $wanted >&2
	exit 0
fi

missing=
for package in $wanted; do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "install-packages: neither root nor sudo; please have these installed:$missing" >&2
		exit 1
	fi
	as_root=sudo
fi

echo "installing:$missing"
install() {
	# shellcheck disable=SC2086 # one word for each package is intended
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		-o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 $missing
}
# Package lists are fetched only when the existing ones are not enough: absent on a fresh image, or out of date.
if ! log=$(install 2>&1); then
	$as_root apt-get update -qq -o DPkg::Lock::Timeout=600
	if ! log=$(install 2>&1); then
		printf '%s\n' "$log" >&2
		exit 1
	fi
fi
