#!/bin/sh
# Makes .venv, and installs the named groups of requirements into it:  sh requirements/install.sh run check
# A group whose list has not changed since it was installed takes a few milliseconds. Nothing is written outside .venv.
set -eu
cd "$(dirname "$0")/.."

stop() {
    echo "$1" >&2
    exit 1
}

python=.venv/bin/python
if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ] || command -v nvidia-smi >/dev/null 2>&1; then
    set -- "$@" gpu
fi

# A stamp holds what was installed, for which Python; it is written when all of it is there.
wanted() { "$python" -V && cat "requirements/$1.txt"; }
installed() { [ -x "$python" ] && [ -f ".venv/$1.stamp" ] && [ "$(wanted "$1")" = "$(cat ".venv/$1.stamp")" ]; }
missing() { for group; do installed "$group" || return 0; done; return 1; }

missing "$@" || exit 0

# One at a time; the second finds the first one's work done.
if command -v flock >/dev/null 2>&1; then
    exec 9<requirements/install.sh
    flock 9
    missing "$@" || exit 0
fi

[ "$(uname -s)" != Darwin ] || stop "The compiler that grades (NVRTC) does not exist for macOS: work in a Linux \
container, for example docker build -t katas . && docker run --rm -it -v \"\$PWD\":/kata katas kata=tiled test"

command -v python3 >/dev/null 2>&1 || stop "There is no python3 here: install Python 3.10 or newer."
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || stop "Python 3.10 or newer is needed, and python3 \
is $(python3 -V 2>&1): put a newer one first on the PATH, or name one that has CuPy: make PYTHON=python3.12 ..."
python3 -c 'import ensurepip, venv' 2>/dev/null || stop "This python3 cannot make a virtual environment: install its \
venv module (on Debian and Ubuntu: apt install python3-venv)."

# Whatever an interrupted make, another Python or a moved folder left behind is made anew.
if ! { [ "$("$python" -V 2>&1)" = "$(python3 -V 2>&1)" ] && "$python" -m pip --version >/dev/null 2>&1; }; then
    rm -rf .venv
    python3 -m venv .venv || { rm -rf .venv; stop "python3 -m venv .venv failed, see above."; }
fi

for group; do
    if installed "$group"; then continue; fi
    case $group in
        run) echo "Installing CuPy, the CUDA compiler and pytest in .venv, once: 630 MB, about a minute." ;;
        gpu) echo "Installing cuBLAS in .venv, once, to time kernels against: 800 MB, about a minute." ;;
        check) echo "Installing ruff, mypy and pytest-xdist in .venv, once: 90 MB, some seconds." ;;
    esac
    "$python" -m pip install --quiet --disable-pip-version-check --requirement "requirements/$group.txt" ||
        stop "The installation has not finished, see above; the next make continues it."
    wanted "$group" >".venv/$group.part"
    mv ".venv/$group.part" ".venv/$group.stamp"
done
