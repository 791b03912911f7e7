"""Where the tests find what they share: under importlib mode pytest adds no folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
