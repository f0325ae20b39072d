#!/usr/bin/env bash
# Make .venv with the package (editable), its dependencies and the development tools, all at the pinned versions.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

# As requires-python in pyproject.toml has it: the versions that the tests were run on.
suits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        suits "$candidate" && printf '%s' "$candidate" && return 0
    done
    return 1
}

python=$(find_python) || fail "Penstock needs Python 3.11, 3.12 or 3.13 and found ${PYTHON:-python3}: $(
    "${PYTHON:-python3}" --version 2>&1 || true
); install one of these, or name it: make PYTHON=/path/to/python3.11 …"

if ! suits .venv/bin/python; then
    say "making .venv with $("$python" --version)"
    rm -rf .venv
    if ! "$python" -m venv .venv >/dev/null 2>&1; then # Debian ships venv apart
        rm -rf .venv
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        apt_install "python$version-venv" python3-venv || true
        "$python" -m venv .venv >/dev/null 2>&1 ||
            fail "$python cannot make virtual environments: install its venv module (on Debian: apt-get install python$version-venv)."
    fi
fi

pip() { .venv/bin/python -m pip --disable-pip-version-check --quiet "$@"; }

say "installing packages into .venv (a few minutes the first time)"
pip install --upgrade 'pip>=25.1' # older ones do not know dependency groups
pip install --constraint constraints.txt --editable . --group dev ||
    fail "the packages could not be installed; pip says why above."
say ".venv is ready"
