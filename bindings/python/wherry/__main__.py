# SPDX-License-Identifier: Apache-2.0
"""python -m wherry --prefix: prints the folder that contains the package's libraries, headers and programs.

python -m wherry COMMAND...: runs the program wherry of the package.
"""

import os
import sys
from pathlib import Path

PREFIX = Path(__file__).resolve().parent / "prefix"


def main() -> int:
    arguments = sys.argv[1:]
    program = PREFIX / "bin" / "wherry"
    if arguments == ["--prefix"]:
        if not PREFIX.is_dir():
            print("wherry: this package was built without its libraries; install it with pip", file=sys.stderr)
            return 1
        print(PREFIX)
        return 0
    if not arguments or not program.is_file():
        print(__doc__, file=sys.stderr)
        return 2
    os.execv(program, [str(program), *arguments])


if __name__ == "__main__":
    sys.exit(main())
