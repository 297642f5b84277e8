#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Puts the newest PyTorch that pip's index has, and what PyTorch's own tests need, into a
# virtual environment, which is kept, and prints its interpreter. GF_TORCH names the
# folder (gradflow/torch in the user's cache). Gigabytes are downloaded the first time.
# If the index cannot be reached, what is there will do; if nothing is, the status is 77.
set -u
folder=${GF_TORCH:-${XDG_CACHE_HOME:-$HOME/.cache}/gradflow/torch}
python=$folder/bin/python
[ -x "$python" ] || python3 -m venv "$folder" >&2 || exit 3
"$folder/bin/pip" install -q --disable-pip-version-check --retries 1 --timeout 20 --upgrade \
	--upgrade-strategy only-if-needed torch numpy setuptools wheel expecttest >&2 ||
	echo 'install-torch: pip cannot get a newer PyTorch' >&2
"$python" -c 'import sys, torch; print("PyTorch", torch.__version__, file=sys.stderr)' || exit 77
echo "$python"
