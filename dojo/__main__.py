"""`python -m dojo test tiled`: see dojo/cli.py."""

import sys

from dojo import compile

try:
    compile.start()  # the compiler's process imports CuPy while this one imports the rest
    from dojo import cli

    sys.exit(cli.main(sys.argv[1:]))
except KeyboardInterrupt:
    print("\nstopped", file=sys.stderr)
    sys.exit(130)
