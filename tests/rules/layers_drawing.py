#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that docs/design/layers.svg is what scripts/draw-layers makes of the code, and that no arrow runs back up.

Before it looks at the tree, the check must find a drawing of yesterday and a circle, planted in scratch trees.
"""

import importlib.machinery
import importlib.util

import source_tree

SCRIPT = str(source_tree.ROOT / "scripts" / "draw-layers")
LOADER = importlib.machinery.SourceFileLoader("draw_layers", SCRIPT)
draw_layers = importlib.util.module_from_spec(importlib.util.spec_from_loader("draw_layers", LOADER))
LOADER.exec_module(draw_layers)


def check(root):
    try:
        drawing = draw_layers.draw(draw_layers.gathered(draw_layers.read_arrows(root)))
    except ValueError as error:
        return [str(error)]
    committed = root / draw_layers.DRAWING
    if committed.is_file() and committed.read_text() == drawing:
        return []
    return [f"{draw_layers.DRAWING} shows other layers than the code has: run scripts/draw-layers"]


LADDER = "## Where things go\n\n    src/base < src/ring, src/fabric < tools/common < tools\n    src/base < bench/harness < tools\n"
TREE = {
    "CONTRIBUTING.md": LADDER,
    "src/base/error.hpp": "",
    "src/base/result.cc": "#include <wherry/result.hpp>",
    "include/wherry/result.hpp": "",
    "src/ring/ring.cc": '#include "base/error.hpp"',
    "src/fabric/shm/shm.cc": "#include <wherry/result.hpp>",
    "tools/main.cc": '#include "base/error.hpp"\n#include "ring/ring.hpp"',
    "src/ring/ring.hpp": "",
    "bench/harness/harness.cc": '#include "base/error.hpp"',
    "bench/harness/harness.hpp": "",
    "tools/common/pages.hpp": "",
    "tools/bench.cc": '#include "bench/harness/harness.hpp"',
}


def self_test():
    """A drawing that is not there, one of another tree and a circle are found; a true one is not."""
    with source_tree.planted(TREE) as root:
        arrows = draw_layers.gathered(draw_layers.read_arrows(root))
        assert arrows["tools"] == {"src/base", "src/ring", "bench"} and arrows["src/fabric"] == {"src/base"}, arrows
        assert arrows["bench"] == {"src/base"} and "tools/common" not in arrows, arrows
        assert draw_layers.reduced(arrows) == [("bench", "src/base"), ("src/fabric", "src/base"), ("src/ring", "src/base"),
                                               ("tools", "bench"), ("tools", "src/ring")]
        assert "run scripts/draw-layers" in check(root)[0]
        (root / "docs/design").mkdir(parents=True)
        (root / draw_layers.DRAWING).write_text(draw_layers.draw(arrows))
        assert not check(root)
        (root / "src/fabric/fabric.cc").write_text('#include "ring/ring.hpp"\n')
        assert "run scripts/draw-layers" in check(root)[0]
        (root / "bench/harness/harness.cc").write_text('#include "tools/common/pages.hpp"\n')
        assert check(root) == ["a circle of includes: bench > tools > bench"], check(root)
        (root / "src/base/error.cc").write_text('#include "ring/ring.hpp"\n')
        (root / "bench/harness/harness.cc").write_text("")
        assert check(root) == ["a circle of includes: src/base > src/ring > src/base"], check(root)


if __name__ == "__main__":
    source_tree.run(self_test, check, "docs/design/layers.svg shows the layers of the code")
