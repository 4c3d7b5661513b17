"""`python -m igd.cli`."""

import sys

from igd.cli import main

sys.exit(main())
