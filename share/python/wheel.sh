#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes a wheel of the Python package with the library and the commands in it. `make
# wheel` calls this.   share/python/wheel.sh VERSION FOLDER LIBRARY COMMAND...
# PYTHON is the interpreter (python3). If auditwheel is installed, or pip can get it,
# the wheel has all libraries that it needs and is tagged manylinux. Else it needs
# those of this machine, which are printed.
set -eu
cd "$(dirname "$0")/../.."
version=$1 out=$(realpath -m "$2") library=$3
shift 3
python=${PYTHON:-python3}
stage=$out/source
rm -rf "$stage" "$out"/*.whl
mkdir -p "$stage"/{docs,man,gradflow/{bin,share/gradflow}}
cp share/python/pyproject.toml share/python/setup.py LICENSE "$stage"
# a link of the README leads to a file that the wheel puts there
sed -E 's,\[([a-z_]+\.md)\]\([a-z_]+\.md\),`share/doc/gradflow/\1`,g; s,share/examples/,gradflow/share/gradflow/examples/,g' \
	docs/pytorch.md > "$stage/README.md"
cp -R docs/*.md docs/timeline.svg docs/tables CHANGES "$stage/docs"
cp "$(dirname "$library")"/../man/*.[1357] "$stage/man"
cp share/python/gradflow/{*.py,py.typed} "$library" "$stage/gradflow"
sed -i "s/^__version__ = .*/__version__ = \"$version\"/" "$stage/gradflow/__init__.py"
cp "$@" "$stage/gradflow/bin"
cp -R share/models share/topologies share/examples "$stage/gradflow/share/gradflow"
# the terms of what auditwheel adds
ldd "$library" "$@" | sed -n 's/.* => \(\/[^ ]*\).*/\1/p' | sort -u | xargs -rn 1 realpath |
	xargs -r dpkg -S 2> /dev/null | sed 's/:.*//' | sort -u | while read -r package; do
	case $package in libc6 | zlib1g | libgcc-s1) continue ;; esac
	cp "/usr/share/doc/$package/copyright" "$stage/LICENSE.$package"
done || true

# pip's own isolation gets setuptools from an index; what is installed will do
isolation=
"$python" -c 'import setuptools, wheel' 2> /dev/null && isolation=--no-build-isolation
# shellcheck disable=SC2086 # nothing, or one word
"$python" -m pip wheel -q --disable-pip-version-check --no-deps $isolation -w "$stage/dist" "$stage"
made=("$stage"/dist/gradflow-"$version"-*.whl)

tool=$out/auditwheel
if "$python" -c 'import auditwheel' 2> /dev/null && command -v patchelf > /dev/null; then
	audit=("$python" -m auditwheel)
elif [ -x "$tool/bin/auditwheel" ] || { "$python" -m venv "$tool" &&
	"$tool/bin/pip" install -q --disable-pip-version-check --retries 0 --timeout 15 auditwheel patchelf; } > /dev/null 2>&1; then
	audit=(env "PATH=$tool/bin:$PATH" "$tool/bin/auditwheel")
else
	mv "${made[@]}" "$out"
	echo "wheel: auditwheel is neither installed nor to be had, so the wheel needs these:"
	objdump -p "$stage"/gradflow/libgradflow.so.0 "$stage"/gradflow/bin/* |
		sed -n 's/^ *NEEDED */  /p' | grep -vE ' (ld-linux.*|lib[cm]\.so\.6)$' | sort -u
	ls "$out"/*.whl
	exit
fi
"${audit[@]}" repair --wheel-dir "$out" "${made[@]}" > "$out/auditwheel.log" 2>&1 || {
	tail -n 20 "$out/auditwheel.log" >&2
	exit 1
}
ls "$out"/*.whl
