# SPDX-License-Identifier: Apache-2.0
"""Files of this machine, read in place, and files of a host: wherry://NODE:PORT/path (docs/files.md)."""

from ._native import File
from ._native import open_file as open

__all__ = ["File", "open"]
