"""Makes this folder's helpers importable by their plain names."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
