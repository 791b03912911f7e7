"""`python -m treefold_contract`: the same as the script `treefold-contract`."""

import sys

from treefold_contract._command import main

sys.exit(main())
