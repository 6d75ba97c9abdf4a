# SPDX-License-Identifier: Apache-2.0
"""What the rounds say: medians, a table, and the one line that is the result."""

import statistics

TITLES = {"tcp": "TCP"}
QUANTITIES = ("seconds", "GB/s", "cpu_s")


def summarize(rounds: dict[str, list[dict]]) -> dict:
    median = {quantity: {name: statistics.median(one[quantity] for one in done) for name, done in rounds.items()}
              for quantity in QUANTITIES}
    others = [name for name in rounds if name != "wherry"]
    # By the seconds: all hand over the same, which may be empty files only.
    ratio = {"throughput": {name: median["seconds"][name] / median["seconds"]["wherry"] for name in others},
             "cpu": {name: median["cpu_s"]["wherry"] / max(median["cpu_s"][name], 1e-6) for name in others}}
    return {"rounds": rounds, "median": median, "ratio": ratio}


def table(result: dict) -> str:
    median = result["median"]
    lines = [f"{'':10}{'seconds':>10}{'GB/s':>10}{'CPU s':>10}"]
    for name in result["rounds"]:
        lines.append(f"{name:10}{median['seconds'][name]:10.2f}{median['GB/s'][name]:10.3f}{median['cpu_s'][name]:10.2f}")
    if not result["in_memory"]:
        which = "over both" if "tcp" in result["rounds"] else "over wherry and rsync"
        lines.append(f"{which}, files reached the disk before they got their names" if result["durable"]
                     else f"{which}, nothing waited for the disk (--no-sync)")
    return "\n".join(lines)


def last_line(result: dict) -> str:
    speed = result["median"]["GB/s"]
    count = len(result["rounds"]["wherry"])
    others = " and ".join(f"{ratio:.1f} times {TITLES.get(name, name)} ({speed[name]:.2f})"
                          for name, ratio in result["ratio"]["throughput"].items())
    return (f"wherry: {speed['wherry']:.2f} GB/s, {others},"
            f" {result['files']} files verified, " + (f"medians of {count} rounds" if count > 1 else "one round"))
