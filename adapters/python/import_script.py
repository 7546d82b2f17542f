"""What `mprun doctor SCRIPT.py` runs: ``python import_script.py SCRIPT [ARGS...]``.

Imports the script the way a job's host would, not as __main__, and runs nothing else of it. The preload library
reports what was loaded when the interpreter exits. Like bootstrap.py this must parse under any Python.
"""
import sys

from bootstrap import refusal

EXIT_START_FAILED = 3


def main():
    reason = refusal()
    if reason is not None:
        sys.stderr.write("mprun: %s: %s\n" % (sys.executable, reason))
        return EXIT_START_FAILED
    from mprun import script, user_code
    from mprun.main import prepare_path
    from mprun.protocol import StartFailure

    path = sys.argv[1]
    prepare_path(path, sys.argv[2:])
    try:
        script.load_script(path)
    except StartFailure as failure:
        user_code.flush_streams()
        sys.stderr.write(user_code.user_traceback(failure.cause))
        sys.stderr.write("mprun: %s\n" % failure.message)
        return EXIT_START_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
