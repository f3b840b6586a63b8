#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnic sweep --slurm: the job array runs under a real Slurm with one node, and gives the table that rnic sweep makes by
itself, byte for byte, points that are refused among them. The folder's name has a space.

usage: check_slurm.py PROGRAM
"""
import contextlib
import getpass
import os
import socket
import subprocess
import sys
import tempfile
import time

LATENCY = "[latency]\nsizes = [64]\niterations = 5\n"
# A time below 0 is refused: two of four points fail.
SWEEP = """experiment = "latency.toml"
[axes]
"latency.sizes" = [2, 256]
"set.driver.post_send_ns" = [100, -1]
"""
TABLES = "sweep.csv", "sweep.json"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def configuration(folder):
    host, user = socket.gethostname().split(".")[0], getpass.getuser()
    values = {
        "ClusterName": "rnic", "SlurmctldHost": "%s(127.0.0.1)" % host, "SlurmUser": user, "SlurmdUser": user,
        "AuthType": "auth/none", "CredType": "cred/none",  # one user, one machine
        "SlurmctldPort": free_port(), "SlurmdPort": free_port(),
        "StateSaveLocation": folder + "/state", "SlurmdSpoolDir": folder + "/spool",
        "SlurmctldPidFile": folder + "/controller.pid", "SlurmdPidFile": folder + "/node.pid",
        "SlurmctldLogFile": folder + "/controller.log", "SlurmdLogFile": folder + "/node.log",
        "ProctrackType": "proctrack/pgid", "TaskPlugin": "task/none", "SwitchType": "switch/none", "MpiDefault": "none",
        "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_CPU", "ReturnToService": 2,
        "NodeName": "%s NodeAddr=127.0.0.1 CPUs=%d State=UNKNOWN" % (host, os.cpu_count()),
        "PartitionName": "all Nodes=ALL Default=YES State=UP"}
    return "".join("%s=%s\n" % item for item in values.items())


@contextlib.contextmanager
def cluster(folder):
    """Controller and node of a cluster; gives the environment in which sbatch and squeue find it."""
    for name in "state", "spool":
        os.mkdir(os.path.join(folder, name))
    path = os.path.join(folder, "slurm.conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write(configuration(folder))
    environment = dict(os.environ, SLURM_CONF=path, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
    daemons = []
    try:
        for daemon in "slurmctld", "slurmd":
            daemons.append(subprocess.Popen([daemon, "-D"], env=environment, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        limit = time.monotonic() + 60
        while True:
            state = subprocess.run(["sinfo", "--noheader", "--format=%T"], env=environment, capture_output=True, text=True)
            if state.stdout.strip() == "idle":
                break
            dead = [d.args[0] for d in daemons if d.poll() is not None]
            if dead or time.monotonic() > limit:
                raise RuntimeError("no Slurm: %s ended, %s%s%s" % (dead, state.stdout, state.stderr, logs(folder)))
            time.sleep(0.2)
        yield environment
    finally:
        for d in reversed(daemons):
            d.terminate()
        for d in daemons:
            d.wait(timeout=30)


def logs(folder):
    text = ""
    for name in "controller.log", "node.log":
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as f:
                text += "\n%s:\n%s" % (name, f.read()[-1500:])
    return text


def content(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def sweep(program, file, out, *more, status=0):
    done = subprocess.run([program, "sweep", file, "--out", out, "--quiet"] + list(more), capture_output=True, text=True,
                          timeout=120)
    if done.returncode != status:
        raise RuntimeError("sweep %s: exit status %d: %s%s" % (more, done.returncode, done.stdout, done.stderr))


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as top:
        file, alone, array = (os.path.join(top, n) for n in ("sweep.toml", "alone", "as tasks"))
        for name, text in ("latency.toml", LATENCY), ("sweep.toml", SWEEP):
            with open(os.path.join(top, name), "w", encoding="utf-8") as f:
                f.write(text)
        sweep(program, file, alone, status=1)
        sweep(program, file, array, "--slurm")
        folder = os.path.join(top, "cluster")
        os.mkdir(folder)
        with cluster(folder) as environment:
            job = os.path.join(array, "job.sh")
            done = subprocess.run(["sbatch", "--wait", "--parsable", job], env=environment, cwd=top, capture_output=True,
                                  text=True, timeout=240)
        tasks = {n: content(array, "points", n) for n in os.listdir(os.path.join(array, "points")) if n.startswith("task-")}
        if done.returncode != 0 or len(tasks) != 4:
            print("expected four tasks; sbatch: %d, %s%s\n%s%s" %
                  (done.returncode, done.stdout, done.stderr, tasks, logs(folder)))
            return 1
        sweep(program, file, array, "--collect", status=1)
        wrong = [t for t in TABLES if content(alone, t) != content(array, t)]
        for t in wrong:
            print("%s: alone\n%s\nas tasks\n%s" % (t, content(alone, t), content(array, t)))
        rows = content(alone, "sweep.csv").splitlines()
        states = [r for r in rows if ",ok," in r], [r for r in rows if ",refused," in r]
        if wrong or [len(s) for s in states] != [2, 2]:
            print("\n".join(rows))
            return 1
        print("4 tasks: the table of rnic sweep")
        return 0


if __name__ == "__main__":
    sys.exit(main())
