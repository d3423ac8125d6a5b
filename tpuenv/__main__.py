"""`python -m tpuenv`: what the installed command `tpuenv` runs."""

from __future__ import annotations

import sys

from tpuenv.main import main

sys.exit(main())
