"""Python imports this file first if its folder is on PYTHONPATH: `python main.py` then runs the program beside it."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MAIN = HERE.parent.parent / "main.py"

if sys.orig_argv[1:] and Path(sys.orig_argv[-1]).absolute() == MAIN:
    # -S: it needs nothing but the standard library.
    os.execv(sys.executable, [sys.executable, "-S", str(HERE / "copy_synthesis.py"), str(MAIN)])
