# SPDX-License-Identifier: MIT
"""Computes figures from what the drivers have printed, and checks for all of them that no lock had two holders.

Times are in ns of CLOCK_MONOTONIC. A slice is a drivers.Slice: it has holds (caller, want, grant, release, done), failures
(caller, want, end, text) and histograms of (value, count). `running` is a drivers.Running."""

import statistics


def percentile(pairs, permille):
    """Returns the smallest value that permille / 1000 of all do not exceed, 0 if there is none. `pairs` are sorted
    (value, count)."""
    total = sum(count for _, count in pairs)
    seen = 0
    for value, count in pairs:
        seen += count
        if seen * 1000 >= total * permille:
            return value
    return 0


def points_ms(values):
    """Returns the percentiles of (ns, count) pairs in milliseconds, by name."""
    pairs = sorted(values)
    return {name: percentile(pairs, permille) / 1e6
            for name, permille in (("p50", 500), ("p90", 900), ("p95", 950), ("p99", 990), ("p99_9", 999), ("max", 1000))}  # fmt: skip


def violations(holds):
    """Counts the grants of one resource that came before the end of an earlier hold."""
    count, held_until = 0, 0
    for _, _, grant, release, _ in sorted(holds, key=lambda hold: hold[2]):
        count += grant < held_until
        held_until = max(held_until, release)
    return count


def all_violations(slices, own):
    """Counts the violations in all slices, with those that warm up. own: each caller has its own resource."""
    holds = [hold for one in slices for hold in one.holds]
    if not own:
        return violations(holds)
    callers = {}
    for hold in holds:
        callers.setdefault(hold[0], []).append(hold)
    return sum(violations(list_) for list_ in callers.values())


def is_failure(failure, own):
    """False for "taken" if callers contend: another caller had the lock, or the end of the slice cut the wait short."""
    return own or not failure[3].startswith("taken")


def uncontended(slices):
    """Returns the figures of callers with a lock of their own. Pairs that ended after their slice do not count."""
    pairs, acquired, done = [], [], 0
    for one in slices:
        inside = [hold for hold in one.holds if hold[4] <= one.end]
        done += len(inside) + sum(count for _, count in one.histograms["pair"])
        pairs += [(hold[4] - hold[1], 1) for hold in inside] + one.histograms["pair"]
        acquired += [(hold[2] - hold[1], 1) for hold in inside] + one.histograms["acquire"]
    return {"pairs": done, "pair_ms": points_ms(pairs), "acquire_ms": points_ms(acquired)}


def waits(one, callers):
    """Returns the longest wait of a caller in this slice, finished or cut short by the end."""
    longest, open_since = 0, {}
    for caller, want, end, _ in one.failures:
        open_since[caller] = want
        longest = max(longest, min(end, one.end) - want)
    for caller, want, grant, _, _ in one.holds:
        longest = max(longest, min(grant, one.end) - want)
    never = set(callers) - {hold[0] for hold in one.holds if hold[2] < one.end}
    for caller in never:
        longest = max(longest, one.end - open_since.get(caller, one.begin))
    return longest


def contended(slices, callers):
    """Returns the figures of callers that contend for one lock. A hand-over is a grant to another caller than the last one."""
    overs, selfs, longest = [], 0, 0
    grants = dict.fromkeys(callers, 0)
    for one in slices:
        last = None
        for hold in sorted(one.holds, key=lambda hold: hold[2]):
            if hold[2] < one.end:
                grants[hold[0]] += 1
                if last is not None and last[0] == hold[0]:
                    selfs += 1
                elif last is not None:
                    overs.append((max(0, hold[2] - last[3]), 1))
            last = hold
        longest = max(longest, waits(one, callers))
    total = sum(grants.values())
    squares = sum(count * count for count in grants.values())
    return {
        "pairs": total,
        "handovers": len(overs),
        "self_share": selfs / (selfs + len(overs)) if selfs + len(overs) else 0.0,
        "handover_ms": points_ms(overs),
        "jain": total * total / (squares * len(grants)) if squares else 0.0,
        "never_granted": sum(count == 0 for count in grants.values()),
        "longest_wait_ms": longest / 1e6,
    }


def attempts_per_grant(slices):
    """Returns attempts per lock, 0 if the driver prints none: few libraries report them."""
    grants = sum(len(one.holds) + sum(count for _, count in one.histograms["acquire"]) for one in slices)
    return sum(one.attempts for one in slices) / grants if grants else 0.0


def figures_of(slices, scenario):
    """Returns the figures of these slices together."""
    seconds = sum(one.end - one.begin for one in slices) / 1e9
    figures = uncontended(slices) if scenario.own else contended(slices, range(scenario.callers))
    per_second = (lambda count: count / seconds) if seconds else (lambda count: 0.0)
    figures["pairs_per_s"] = per_second(figures["pairs"])
    if not scenario.own:
        figures["handovers_per_s"] = per_second(figures["handovers"])
    figures["cpu_us_per_pair"] = sum(one.cpu_us for one in slices) / figures["pairs"] if figures["pairs"] else 0.0
    return figures


def compared(line):
    """Returns the figures of a line, or of a round of it, that are compared by ratios."""
    name, rate = ("handover_ms", "handovers_per_s") if "handover_ms" in line else ("pair_ms", "pairs_per_s")
    return {"rate": line[rate], "p50": line[name]["p50"], "cpu": line["cpu_us_per_pair"]}


def result(running, scenario, version):
    """Returns one line of the table. Slices that warm up count for violations and failures only."""
    counted = running.slices[running.driver.warm :]
    failures = [failure for one in running.slices for failure in one.failures if is_failure(failure, scenario.own)]
    return {
        "scenario": scenario.name,
        "driver": running.driver.name,
        "version": version,
        "tls": running.tls,
        **figures_of(counted, scenario),
        "rounds": [compared(figures_of([one], scenario)) for one in counted],
        "attempts_per_grant": attempts_per_grant(counted),
        "failures": len(failures),
        "failure": failures[-1][3] if failures else "",
        "violations": all_violations(running.slices, scenario.own),
        "leftover_keys": max(running.left_between, running.left_behind),
        "leftover_keys_at_the_end": running.left_behind,
        "broken": running.broken or "",
    }


def of_rounds(line, other):
    """Returns, by name, the median, smallest and largest ratio of the rounds of two lines. Without a ratio a name is left
    out."""
    found = {}
    for key in ("rate", "p50", "cpu") if other else ():
        ratios = sorted(mine[key] / theirs[key] for mine, theirs in zip(line["rounds"], other["rounds"])
                        if mine[key] > 0 and theirs[key] > 0)  # fmt: skip
        if ratios:
            found[key] = {"median": statistics.median(ratios), "least": ratios[0], "most": ratios[-1]}
    return found


def add_ratios(results):
    """Adds the ratios of each line to the library and to the baseline in the same scenario, over TLS if the line is. A line
    over TLS also gets those of its rounds to the ones without TLS, and to those of the library over TLS."""
    bases = {(line["scenario"], line["tls"], line["driver"]): line for line in results}
    for line in results:
        line["ratio"] = {}
        for base in ("redlock", "baseline"):
            other = bases.get((line["scenario"], line["tls"], base))
            if other is None:
                continue
            mine, theirs = compared(line), compared(other)
            for key in ("rate", "p50"):
                if mine[key] > 0 and theirs[key] > 0:
                    line["ratio"][f"{key}_{base}"] = mine[key] / theirs[key]
        if line["tls"]:
            line["to_plain"] = of_rounds(line, bases[line["scenario"], False, line["driver"]])
            line["to_redlock"] = of_rounds(line, bases.get((line["scenario"], True, "redlock")))


def passed(line):
    """True if the line shows no error. Decides the exit status for the library's own lines only."""
    return (not line["broken"] and line["violations"] == 0 and line["leftover_keys"] == 0
            and line["failures"] * 100 <= line["pairs"])  # fmt: skip
