"""`python -m cli`: what the installed command `tpuenv` runs."""

from __future__ import annotations

import sys

from cli import main

sys.exit(main())
