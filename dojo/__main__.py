"""`python -m dojo test tiled`: see dojo/cli.py. No traceback reaches the learner, unless --tb asks for it."""

import os
import sys

try:
    from dojo import compile

    compile.start()  # the compiler's process imports CuPy while this one imports the rest
    if sys.argv[1:2] == ["doctor"]:  # where the rest may not even be there
        from dojo import doctor

        sys.exit(doctor.main(fresh="fresh" in sys.argv))
    from dojo import cli, outcome

    try:
        status = cli.main(sys.argv[1:])
    except BrokenPipeError:
        raise
    except Exception as error:
        if any(argument.startswith("--tb") for argument in sys.argv):
            raise
        print(outcome.internal_error(error), file=sys.stderr)
        status = 1
except BrokenPipeError:  # the reader has left, as in `make doctor | head -1`
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    status = 0 if sys.argv[1:2] == ["doctor"] else 1  # of a grade it is not known
except KeyboardInterrupt:
    print("\nstopped", file=sys.stderr)
    status = 130
sys.exit(status)
