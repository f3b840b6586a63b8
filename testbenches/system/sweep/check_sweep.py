#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnic sweep: grids, lists and Latin hypercubes; each point is what rnic run gives by itself; CSV, JSON and SQLite say the
same; a point that fails is its own; a sweep that was interrupted goes on, a changed one is refused; tasks of a job array
give the same table; wrong files are refused in one line.

usage: check_sweep.py PROGRAM
"""
import csv
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from faults import Faults, run_checks  # noqa: E402

LATENCY = "[latency]\nsizes = [64]\niterations = 5\n"
LOAD = """duration_us = 100
[[workload]]
name = "rpc"
from = "h1"
to = "h2"
size = 64
arrivals = "poisson"
rate_mpps = 0.5
[[workload]]
background = true
from = "h2"
to = "h1"
size = 1024
depth = 1
"""


class Sweeps(Faults):
    def call(self, *arguments, status=0):
        done = subprocess.run([self.program, "sweep"] + list(arguments), capture_output=True, text=True, timeout=200)
        self.expect(done.returncode == status, "%s: exit status %d: %s%s" %
                    (arguments, done.returncode, done.stdout, done.stderr[-300:]))
        return done

    def table(self, out):
        """Rows of the CSV by point, which JSON and SQLite must have as well."""
        with open(os.path.join(out, "sweep.csv"), newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        with open(os.path.join(out, "sweep.json"), encoding="utf-8") as f:
            points = json.load(f)["points"]
        with sqlite3.connect(os.path.join(out, "sweep.sqlite")) as db:
            db.row_factory = sqlite3.Row
            stored = [dict(r) for r in db.execute("SELECT * FROM points ORDER BY point")]
        self.expect(len(rows) == len(points) == len(stored), "%s: %d, %d and %d rows" %
                    (out, len(rows), len(points), len(stored)))
        for row, point, line in zip(rows, points, stored):
            axes, results = point["axes"], point.get("results", {})
            self.expect(row["status"] == point["status"] == line["status"], "status of point %s" % row["point"])
            self.expect(row["error"] == point.get("error", "") == line["error"], "error of point %s" % row["point"])
            for name, value in axes.items():
                self.expect(same(row[name], value) and line["axis " + name] == value, "axis %s of %s" % (name, row))
            known = {"point", "status", "error"} | {"axis " + a for a in axes} | set(results)
            self.expect(all(line[n] is None for n in line if n not in known), "%s: what is missing is NULL" % line)
            for name, value in results.items():
                self.expect(same(row[name], value) and line[name] == value, "%s: %s, %s and %s" %
                            (name, row[name], value, line[name]))
        return rows

    def sweep(self, text, *arguments, status=0):
        self.number += 1
        out = self.path("out%d" % self.number)
        done = self.call(self.write(text, "sweep%d.toml" % self.number), "--out", out, "--quiet", *arguments,
                         status=status)
        return self.table(out), done, out

    def refuse(self, text, *words):
        words = words if any(w.endswith(".toml") for w in words) else ("wrong.toml",) + words
        done = self.call(self.write(text, "wrong.toml"), "--out", self.path("none"), status=2)
        self.expect(len(done.stderr.splitlines()) == 1, "not one line: %s" % done.stderr)
        for word in words:
            self.expect(word in done.stderr, "does not say %r: %s" % (word, done.stderr))


def same(text, value):
    return text == value if isinstance(value, str) else float(text) == float(value)


def check_grid(s):
    rows, _, out = s.sweep('experiment = "latency.toml"\n[axes]\n"set.adapter.clock_khz" = [300000, 427000]\n'
                           '"latency.verb" = ["write", "read"]\n"latency.sizes" = { from = 2, to = 32, steps = 3, scale = "log" }\n')
    s.expect(len(rows) == 12, "grid: %d points" % len(rows))
    found = {(r["set.adapter.clock_khz"], r["latency.verb"], r["latency.sizes"]) for r in rows}
    s.expect(found == {(c, v, b) for c in ("300000", "427000") for v in ("write", "read") for b in ("2", "8", "32")},
             "grid: %s" % found)
    for row in rows:
        direct = s.path("direct.json")
        subprocess.run([s.program, "latency", "--iterations", "5", "--sizes", row["latency.sizes"], "--verb",
                        row["latency.verb"], "--set", "adapter.clock_khz=" + row["set.adapter.clock_khz"], "--json", direct,
                        "--overwrite"], check=True, stdout=subprocess.DEVNULL)
        with open(direct, encoding="utf-8") as f:
            expected = json.load(f)["rows"][0]["typical_us"]
        got = row["rows.%s.typical_us" % row["latency.sizes"]]
        s.expect(float(got) == expected, "point %s: %s us, alone %s us" % (row["point"], got, expected))
    # One adapter's own.
    rows, _, _ = s.sweep('experiment = "latency.toml"\n[axes]\n"set.a.adapter.clock_khz" = [300000, 427000]\n'
                         '"set.b.adapter.clock_khz" = [300000, 427000]\n')
    found = {}
    for row in rows:
        sides = row["set.a.adapter.clock_khz"], row["set.b.adapter.clock_khz"]
        direct = s.path("direct.json")
        subprocess.run([s.program, "latency", "--iterations", "5", "--sizes", "64", "--set", "a.adapter.clock_khz=" + sides[0],
                        "--set", "b.adapter.clock_khz=" + sides[1], "--json", direct, "--overwrite"], check=True,
                       stdout=subprocess.DEVNULL)
        with open(direct, encoding="utf-8") as f:
            expected = json.load(f)["rows"][0]["typical_us"]
        found[sides] = float(row["rows.64.typical_us"])
        s.expect(found[sides] == expected, "sides %s: %s us, alone %s us" % (sides, found[sides], expected))
    s.expect(len(set(found.values())) >= 3 and min(found.values()) == found["427000", "427000"], "sides: %s" % found)
    # Whole numbers are rounded; the last one is what was asked for, however the others come out.
    rows, _, _ = s.sweep('experiment = "latency.toml"\n[axes]\n"latency.sizes" = { from = 1, to = 4, steps = 3 }\n')
    s.expect([r["latency.sizes"] for r in rows] == ["1", "3", "4"], "range: %s" % rows)
    rows, _, out = s.sweep('experiment = "load.toml"\n[axes]\n'
                           '"workload.1.rate_mpps" = { from = 0.3, to = 0.9, steps = 4, scale = "log" }\n')
    s.expect([r["workload.1.rate_mpps"] for r in rows][::3] == ["0.3", "0.9"], "range: %s" % rows)
    for number, rate in (1, 0.3), (4, 0.9):
        with open(os.path.join(out, "points", "%06d.toml" % number), "rb") as f:
            workloads = tomllib.load(f)["workload"]
        s.expect([w.get("rate_mpps") for w in workloads] == [rate, None], "workload.1 is the first: %s" % workloads)
    # A point of another experiment is run again.
    first = os.path.join(out, "points", "000001")
    with open(first + ".toml", encoding="utf-8") as f:
        own = f.read()
    with open(first + ".toml", "w", encoding="utf-8") as f:
        f.write(own.replace("0.3", "0.4"))
    s.call(s.path("sweep%d.toml" % s.number), "--out", out, "--quiet")
    with open(first + ".toml", encoding="utf-8") as f:
        s.expect(f.read() == own, "a point of another experiment was taken")
    # The same sweep again runs nothing.
    before = {e.name: e.stat().st_mtime_ns for e in os.scandir(os.path.join(out, "points"))}
    s.call(s.path("sweep%d.toml" % s.number), "--out", out, "--quiet")
    s.expect(before == {e.name: e.stat().st_mtime_ns for e in os.scandir(os.path.join(out, "points"))}, "it ran again")
    return out


def check_list(s):
    rows, _, _ = s.sweep('experiment = "load.toml"\nplan = "list"\ncolumns = ["workloads.rpc.offered"]\n[axes]\n'
                         '"workload.rpc.rate_mpps" = [0.2, 2.0, 0.9]\n"workload.2.size" = [64, 128, 256]\n'
                         '"parameters.host.llc_read_ps" = [200000, 300000, 400000]\n"hosts.h2.driver.post_send_ns" = [1, 2, 3]\n')
    s.expect([(r["workload.rpc.rate_mpps"], r["workload.2.size"]) for r in rows] ==
             [("0.2", "64"), ("2", "128"), ("0.9", "256")], "list: %s" % rows)
    s.expect(float(rows[1]["workloads.rpc.offered"]) > 3 * float(rows[0]["workloads.rpc.offered"]), "list: rates")


def check_hypercube(s):
    text = ('experiment = "load.toml"\nplan = "latin-hypercube"\ncount = 20\nseed = 4\n[axes]\n'
            '"workload.rpc.rate_mpps" = { from = 0.1, to = 2.1 }\n"parameters.host.llc_read_ps" = { from = 100000, to = 10000000, '
            'scale = "log" }\n"workload.rpc.size" = [64, 256]\n')
    rows, _, _ = s.sweep(text)
    parts = sorted(int((float(r["workload.rpc.rate_mpps"]) - 0.1) / 0.1) for r in rows)
    s.expect(parts == list(range(20)), "hypercube: rates are in parts %s" % parts)
    orders = [sorted(range(20), key=lambda i, axis=axis: float(rows[i][axis])) for axis in
              ("workload.rpc.rate_mpps", "parameters.host.llc_read_ps")]
    s.expect(orders[0] != orders[1] and list(range(20)) not in orders, "hypercube: axes rise together: %s" % orders)
    logs = sorted(int(len(rows) * (math.log10(float(r["parameters.host.llc_read_ps"])) - 5) / 2) for r in rows)
    s.expect(sum(abs(a - b) for a, b in zip(logs, range(20))) <= 2, "hypercube: logarithms are in parts %s" % logs)
    s.expect(sorted(r["workload.rpc.size"] for r in rows) == ["256"] * 10 + ["64"] * 10, "hypercube: sizes")
    whole = ('experiment = "load.toml"\nplan = "latin-hypercube"\ncount = 12\n[axes]\n'
             '"workload.rpc.qps" = { from = 1, to = 12 }\n')
    rows_of_whole, _, _ = s.sweep(whole)
    qps = sorted(int(r["workload.rpc.qps"]) for r in rows_of_whole)
    s.expect(qps == list(range(1, 13)), "hypercube: whole numbers %s" % qps)
    again, _, _ = s.sweep(text)
    s.expect(again == rows, "hypercube: not the same points again")
    other, _, _ = s.sweep(text.replace("seed = 4", "seed = 5"))
    s.expect(other != rows, "hypercube: the seed changes nothing")


def check_failures(s):
    rows, done, out = s.sweep('experiment = "latency.toml"\n[axes]\n"latency.sizes" = [2, 99999999999, 64]\n', status=1)
    s.expect([r["status"] for r in rows] == ["ok", "refused", "ok"], "failures: %s" % rows)
    s.expect("99999999999" in rows[1]["error"] and "point 2 refused" in done.stderr, "failures: %s" % done.stderr)
    s.expect("2 ok, 1 refused" in done.stdout, "failures: %s" % done.stdout)
    # RFC 4180: what has commas and quotes is one field.
    odd, _, _ = s.sweep('experiment = "latency.toml"\n[axes]\n"latency.verb" = [\'a "b", c\']\n', status=1)
    s.expect(odd[0]["latency.verb"] == 'a "b", c' and odd[0]["status"] == "refused", "failures: %s" % odd)
    # Another sweep does not take its folder, and leaves it as it is.
    before = sorted(os.listdir(out))
    s.write('experiment = "latency.toml"\n[axes]\n"latency.sizes" = [2]\n', "other.toml")
    done = s.call(s.path("other.toml"), "--out", out, status=2)
    s.expect(len(done.stderr.splitlines()) == 1 and "something else" in done.stderr, "folder: %s" % done.stderr)
    s.expect(sorted(os.listdir(out)) == before, "folder: changed")


def check_interrupted(s):
    text = 'experiment = "load.toml"\n[axes]\n"workload.rpc.rate_mpps" = { from = 0.1, to = 2.0, steps = 60 }\n'
    whole, _, _ = s.sweep(text)
    s.number += 1
    out, file = s.path("cut"), s.write(text, "cut.toml")
    running = subprocess.Popen([s.program, "sweep", file, "--out", out, "--quiet", "--jobs", "1"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    points = os.path.join(out, "points")
    while running.poll() is None and not (os.path.isdir(points) and
                                          sum(n.endswith(".status") for n in os.listdir(points)) >= 5):
        time.sleep(0.002)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    s.call(file, "--out", out, "--collect", status=1)
    states = [r["status"] for r in s.table(out)]
    s.expect(states.count("ok") >= 5 and set(states) <= {"ok", "missing"}, "interrupted: %s" % states)
    s.call(file, "--out", out, "--quiet")
    s.expect(s.table(out) == whole, "interrupted: gone on with, it has another table")


def check_points_again(s):
    """A result that is gone, or was cut off with the power, and a run that was killed are run again; a sweep that is
    killed takes its runs with it."""
    text = 'experiment = "latency.toml"\n[axes]\n"latency.sizes" = [2, 64, 128]\n'
    whole, _, out = s.sweep(text)
    file, points = s.path("sweep%d.toml" % s.number), os.path.join(out, "points")
    os.remove(os.path.join(points, "000001.json"))
    with open(os.path.join(points, "000002.json"), "r+b") as f:
        f.truncate(1000)
    with open(os.path.join(points, "000003.status"), "w", encoding="utf-8") as f:
        f.write("crashed\n")
    for stub in "{}", "[]", "null":  # in one piece, but no result
        with open(os.path.join(points, "000001.json"), "w", encoding="utf-8") as f:
            f.write(stub)
        s.call(file, "--out", out, "--collect", status=1)
        s.expect(s.table(out)[0]["status"] == "missing", "%s is a result: %s" % (stub, s.table(out)[0]))
    os.remove(os.path.join(points, "000001.json"))
    s.call(file, "--out", out, "--collect", status=1)
    s.expect([r["status"] for r in s.table(out)] == ["missing", "missing", "crashed"], "again: %s" % s.table(out))
    s.call(file, "--out", out, "--quiet")
    s.expect(s.table(out) == whole, "again: %s" % s.table(out))

    # Refused or crashed for a reason that has gone, and made by another program: run again.
    for status in "refused", "crashed":
        with open(os.path.join(points, "000003.status"), "w", encoding="utf-8") as f:
            f.write(status + "\n")
        s.call(file, "--out", out, "--quiet")
        s.expect(s.table(out) == whole, "%s: %s" % (status, s.table(out)))
    commit = subprocess.run([s.program, "--version"], capture_output=True, text=True, check=True).stdout.split("(")[1][:8].encode()
    other = s.path("other-rnic")
    with open(s.program, "rb") as f, open(other, "wb") as g:
        program = f.read()
        s.expect(program.count(commit) > 0, "no commit %s in the program" % commit)
        g.write(program.replace(commit, bytes((b ^ 1 if b in b"23456789" else b) for b in commit[:1]) + b"0" + commit[2:]))
    os.chmod(other, 0o755)
    subprocess.run([other, "sweep", file, "--out", out, "--quiet"], capture_output=True, timeout=100, check=True)
    versions = set()
    for point in "000001", "000002", "000003":
        with open(os.path.join(points, point + ".json"), encoding="utf-8") as f:
            versions.add(json.load(f)["version"])
    with open(os.path.join(out, "sweep.json"), encoding="utf-8") as f:
        s.expect(versions == {json.load(f)["version"]}, "results of %s" % versions)

    long = "duration_us = 100000000\n" + LOAD[LOAD.index("[[workload]]"):]
    s.write(long, "long.toml")
    file = s.write('experiment = "long.toml"\n[axes]\n"workload.rpc.rate_mpps" = [0.1, 0.2]\n', "killed.toml")
    running = subprocess.Popen([s.program, "sweep", file, "--out", s.path("killed"), "--quiet", "--jobs", "2"])
    children = "/proc/%d/task/%d/children" % (running.pid, running.pid)
    while len(open(children, encoding="ascii").read().split()) < 2:
        time.sleep(0.01)
    mine = open(children, encoding="ascii").read().split()
    running.kill()
    running.wait()

    def is_alive(pid):
        try:
            with open("/proc/%s/stat" % pid, encoding="ascii") as f:
                return f.read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    end = time.monotonic() + 60
    while any(is_alive(pid) for pid in mine) and time.monotonic() < end:
        time.sleep(0.01)
    s.expect(not any(is_alive(pid) for pid in mine), "killed: its runs go on")


def check_inputs(s):
    """A file that the experiment names is a part of it."""
    s.write("64 1\n128 100\n", "cdf.txt")
    cdf = s.path("cdf.txt")
    s.write('duration_us = 100\n[[workload]]\nname = "w"\nfrom = "h1"\nto = "h2"\nsize_cdf = "%s"\n' % cdf, "cdf.toml")
    file, out = s.write('experiment = "cdf.toml"\n[axes]\n"workload.w.depth" = [1, 2, 3]\n', "inputs.toml"), s.path("inputs")
    s.call(file, "--out", out, "--quiet")
    small = s.table(out)
    os.remove(os.path.join(out, "points", "000002.json"))
    s.write("64 1\n8000 100\n", "cdf.txt")
    s.call(file, "--out", out, "--collect", status=1)
    s.expect([r["status"] for r in s.table(out)] == ["missing"] * 3, "inputs: results of another file are taken")
    s.call(file, "--out", out, "--quiet")
    s.expect(all(a != b for a, b in zip(small, s.table(out))), "inputs: not run again")
    os.remove(cdf)
    s.call(file, "--out", out, "--quiet", status=1)
    s.expect(all("no file that can be read" in r["error"] for r in s.table(out)), "inputs: %s" % s.table(out))
    s.expect(not any(out in r["error"] for r in s.table(out)), "inputs: errors have the folder's name: %s" % s.table(out))
    s.write("64 1\n128 100\n", "cdf.txt")
    s.call(file, "--out", out, "--quiet")
    s.expect(s.table(out) == small, "inputs: %s" % s.table(out))


def check_reasons(s):
    """A point that failed says why."""
    s.write(LOAD.replace("duration_us = 100", "duration_us = 3000").replace("size = 64", "size = 64\nack_timeout = 1") +
            "[faults]\nat = \"h1\"\ndrop = 0\n", "lost.toml")
    file, out = s.write('experiment = "lost.toml"\n[axes]\n"faults.drop" = [0, 100]\n', "lost-sweep.toml"), s.path("lost")
    done = s.call(file, "--out", out, "--quiet", status=1)
    rows = s.table(out)
    s.expect([r["status"] for r in rows] == ["ok", "failed"], "reasons: %s" % rows)
    s.expect("retry_exceeded" in rows[1]["error"] and "retry_exceeded" in done.stderr, "reasons: %s %s" % (rows[1], done.stderr))


def check_columns(s):
    text = 'experiment = "load.toml"\ncolumns = ["%s"]\n[axes]\n"workload.rpc.rate_mpps" = [0.1, 0.4]\n'
    s.number += 1
    out, file = s.path("columns"), s.write(text % "all.latncy.p99", "columns.toml")
    done = s.call(file, "--out", out, "--quiet", status=2)
    s.expect("columns.toml: columns: 'all.latncy.p99'" in done.stderr, "columns: %s" % done.stderr)
    results = os.path.join(out, "points", "000001.json")
    before = os.stat(results).st_mtime_ns
    s.write(text % "all.latency.p99", "columns.toml")
    s.call(file, "--out", out, "--quiet")
    s.expect(all("all.latency.p99" in r for r in s.table(out)), "columns: %s" % s.table(out))
    s.expect(os.stat(results).st_mtime_ns == before, "columns: points were run again")


def check_job_array(s):
    text = 'experiment = "load.toml"\n[axes]\n"workload.rpc.rate_mpps" = [0.1, 0.4, 0.7]\n'
    whole, _, _ = s.sweep(text)
    out, file = s.path("array"), s.write(text, "array.toml")
    said = s.call(file, "--out", out, "--slurm").stdout
    job = os.path.join(out, "job.sh")
    s.expect("sbatch " + job in said, "job array: %s" % said)
    with open(job, encoding="utf-8") as f:
        script = f.read()
    s.expect("#SBATCH --array=1-3\n" in script, "job array: %s" % script)
    for task in "2", "3", "1":
        subprocess.run([job], env=dict(os.environ, SLURM_ARRAY_TASK_ID=task), check=True)
    s.call(file, "--out", out, "--collect")
    s.expect(s.table(out) == whole, "job array: another table")
    s.call(file, "--out", out, "--point", "4", status=2)


def check_refusals(s):
    axes = "[axes]\n\"latency.sizes\" = [2]\n"
    head = "experiment = \"latency.toml\"\n"
    for text, words in ((axes, ["experiment: is missing"]),
                        ("experiment = \"gone.toml\"\n" + axes, ["gone.toml", "cannot be read"]),
                        (head, ["axes: is missing"]),
                        (head + "[axes]\n\"latency.sizes\" = 2\n", ["latency.sizes", "a list of values"]),
                        (head + "[axes]\nlatency.sizes = [2]\n", ["in quotes"]),
                        (head + "[axes]\n\"workload.1.size\" = [2]\n", ["workload.1.size", "no workload"]),
                        (head + "plan = \"gird\"\n" + axes, ["gird", "grid"]),
                        (head + "count = 3\n" + axes, ["count", "latin-hypercube"]),
                        (head + "plan = \"latin-hypercube\"\n" + axes, ["count: is missing"]),
                        (head + "plan = \"list\"\n" + axes + "\"latency.iterations\" = [1, 2]\n", ["1 values", "expected 2"]),
                        (head + "[axes]\n\"latency.sizes\" = { from = 2, to = 1, steps = 3 }\n", ["from must be below"]),
                        (head + "[axes]\n\"latency.sizes\" = { from = 1, to = 2 }\n", ["steps: is missing"]),
                        (head + "[axes]\n\"latency.sizes\" = { from = 0, to = 2, steps = 3, scale = \"log\" }\n", ["above 0"]),
                        (head + "colums = [\"x\"]\n" + axes, ["no field colums"])):
        s.refuse(text, *words)


def set_up(s):
    s.write(LATENCY, "latency.toml")
    s.write(LOAD, "load.toml")


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, Sweeps, (set_up, check_grid, check_list, check_hypercube, check_failures,
                                          check_interrupted, check_points_again, check_inputs, check_reasons, check_columns, check_job_array,
                                          check_refusals)))
