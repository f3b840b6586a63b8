# SPDX-License-Identifier: Apache-2.0
"""Channels, memories, engines and pipelines of a waveform, cycle by cycle, against what they declare: each function returns
the faults that it finds, and what it has counted, by the names that the results of a run have for it."""
import collections


class Cycles:
    """Signals of a waveform in cycles of one clock. All of them change at its edges, which are numbered in the file."""

    def __init__(self, wave, clock):
        self.wave = wave
        self.of = {t: int(v, 2) for t, v in wave.changes[clock + ".cycle"] if set(v) <= {"0", "1"} and int(v, 2) != 0}
        self.first, self.last = min(self.of.values()) - 1, max(self.of.values())

    def spans(self, path):
        """(first cycle, first one behind, value): where the signal is not 0, in order."""
        found, at, now = [], self.first, 0
        for t, text in self.wave.changes[path] + [(None, "0")]:
            cycle = self.last + 1 if t is None else self.of[t] if t in self.of else self.first
            if now != 0 and cycle > at:
                found.append((at, cycle, now))
            at, now = cycle, int(text, 2)
        return found

    def each(self, path):
        """Value by cycle, where it is not 0."""
        return {c: v for a, b, v in self.spans(path) for c in range(a, b)} if path in self.wave.changes else {}

    def total(self, path):
        return sum(v * (b - a) for a, b, v in self.spans(path))


def constant(wave, path):
    """A declared number: a parameter with one value."""
    values = {v for _, v in wave.changes[path]}
    if wave.kinds[path] != "parameter" or len(values) != 1:
        raise ValueError("%s: %s with %d values" % (path, wave.kinds[path], len(values)))
    return int(values.pop(), 2)


def channel(cycles, name):
    wave, faults, width = cycles.wave, [], constant(cycles.wave, name + ".width")
    depth = constant(wave, name + ".depth")
    push, pop = cycles.each(name + ".push"), cycles.each(name + ".pop")
    for what, made in ("pushes", push), ("pops", pop):
        wrong = [c for c, n in made.items() if n > width]
        if wrong:
            faults.append("%s: more than %d %s in cycles %s" % (name, width, what, wrong[:3]))
    spans = cycles.spans(name + ".occupancy")
    wrong = [a for a, _, n in spans if n > depth]
    if wrong:
        faults.append("%s: more than %d items from cycle %d on" % (name, depth, wrong[0]))
    # What enters or leaves in a cycle is there, or gone, in the next one.
    begin = spans[0][2] if spans and spans[0][0] == cycles.first else 0
    inside, at, level = begin, begin, {a: n for a, _, n in spans}
    level.update({b: 0 for _, b, _ in spans if b not in level})
    for c in sorted(set(level) | {c + 1 for c in push} | {c + 1 for c in pop}):
        inside += push.get(c - 1, 0) - pop.get(c - 1, 0)
        at = level.get(c, at)
        if inside != at and c <= cycles.last:
            faults.append("%s: occupancy %d in cycle %d, pushes less pops %d" % (name, at, c, inside))
            break
    return faults, {name + ".pushes": sum(push.values())}, sum(pop.values()) + inside - begin == sum(push.values())


KINDS = (("reads", "read_ports"), ("writes", "write_ports"), ("updates", "read_write_ports"))


def memory(cycles, name):
    wave, faults, counted = cycles.wave, [], {}
    declared = {kind: constant(wave, "%s.%s" % (name, kind)) for _, kind in KINDS if "%s.%s" % (name, kind) in wave.changes}
    ports, shared = constant(wave, name + ".ports"), constant(wave, name + ".shared")
    if sum(declared.values()) != ports:
        faults.append("%s: %d ports, by kind %s" % (name, ports, declared))
    made, by_user = collections.Counter(), collections.Counter()
    for kind, of in KINDS:
        here = cycles.each("%s.%s" % (name, kind))
        made.update(here)
        most = declared.get(of, 0) + (declared.get("read_write_ports", 0) if kind != "updates" else 0)
        wrong = [c for c, n in here.items() if n > most]
        if wrong:
            faults.append("%s: more than %d %s in cycles %s" % (name, most, kind, wrong[:3]))
    users = [p[:-len(".access")] for p in wave.changes if p.startswith(name + ".") and p.endswith(".access")]
    for user in users:
        access = cycles.each(user + ".access")
        by_user.update(access)
        counted["%s.accesses.%s" % (name, user[len(name) + 1:])] = sum(access.values())
        wrong = [c for c, n in access.items() if n > (ports if shared else 1)]
        if wrong:
            faults.append("%s: more accesses than ports in cycles %s" % (user, wrong[:3]))
    wrong = [c for c, n in made.items() if n > ports]
    if wrong:
        faults.append("%s: more than %d accesses in cycles %s" % (name, ports, wrong[:3]))
    if made != by_user:
        faults.append("%s: users make other accesses than the memory takes" % name)
    return faults, counted, max(made.values(), default=0) == ports


def engine(cycles, name):
    faults = []
    starts = sorted(cycles.each(name + ".start"))
    busy, blocked = (cycles.spans("%s.%s" % (name, s)) for s in ("busy", "blocked"))
    intervals = cycles.spans(name + ".interval")
    known = {c: 0 for c in starts}
    k = 0
    for c in starts:
        while k < len(intervals) and intervals[k][1] <= c:
            k += 1
        if k < len(intervals) and intervals[k][0] <= c:
            known[c] = intervals[k][2]
    within = {c: v for a, b, v in busy for c in range(a, b)}
    covered = set()
    for c, after in zip(starts, starts[1:] + [cycles.last + 1]):
        # Where the interval is known at its end only, the engine is busy until then.
        end = c + known[c]
        if known[c] == 0:
            end = c
            while end in within and (end == c or end < after):
                end += 1
        if after < end and after <= cycles.last:
            faults.append("%s: starts in cycles %d and %d, the first for %d" % (name, c, after, end - c))
            break
        covered.update(range(c, end))
    begun = busy[0] if busy and busy[0][0] == cycles.first else None  # before the waveform
    lone = [c for c in within if c not in covered and (begun is None or c >= begun[1])]
    if lone:
        faults.append("%s: busy in cycle %d without an operation" % (name, lone[0]))
    idle = [c for c in covered if c not in within and c <= cycles.last]
    if idle:
        faults.append("%s: not busy in cycle %d, in an operation" % (name, idle[0]))
    held = [c for a, b, _ in blocked for c in range(a, b)]
    both = [c for c in held if c in within]
    if both:
        faults.append("%s: busy and blocked in cycle %d" % (name, both[0]))
    counted = {name + ".operations": len(starts)}
    if not blocked or blocked[-1][1] <= cycles.last:
        counted[name + ".blocked_cycles"] = len(held)
    if not busy or busy[-1][1] <= cycles.last:
        counted[name + ".busy_cycles"] = len(within)
    if cycles.wave.bits[name + ".start"] != 1:
        faults.append("%s: start has %d bits" % (name, cycles.wave.bits[name + ".start"]))
    return faults, counted, set(known.values())


def pipeline(cycles, name):
    wave, faults = cycles.wave, []
    starts = cycles.each(name + ".start")
    interval, length = (constant(wave, "%s.%s" % (name, s)) for s in ("interval", "cycles"))
    stages = [(p[:-len(".items")], constant(wave, p[:-len(".items")] + ".cycles"))
              for p in wave.changes if p.startswith(name + ".") and p.endswith(".items")]
    if interval != 1 or any(n != 1 for n in starts.values()):
        faults.append("%s: more than one start in a cycle" % name)
    if sum(n for _, n in stages) != length:
        faults.append("%s: %d cycles, of its stages %s" % (name, length, stages))
    at = 0
    for stage, n in stages:
        inside = collections.Counter(c for s in starts for c in range(s + at, s + at + n))
        shown = cycles.each(stage + ".items")
        wrong = [c for c in set(inside) | set(shown) if inside.get(c, 0) != shown.get(c, 0) and c <= cycles.last]
        if wrong or any(k > n for k in shown.values()):
            faults.append("%s: other items than entered in cycles %s" % (stage, sorted(wrong)[:3]))
        at += n
    return faults, {name + ".entered": len(starts)}, dict(stages)
