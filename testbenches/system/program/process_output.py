# SPDX-License-Identifier: Apache-2.0
"""All that a program has said, where its first lines were read one by one."""
import threading


def rest_of(process, seconds, grace=0):
    """Waits for the end of `process`, which has a pipe for its output. Gives what it said since the last readline() and
    whether it had to be ended: killed after `seconds`, or with `grace` asked to end then, and killed that much later.

    communicate() with a time-out reads the pipe by itself, and leaves out what readline() has buffered already: what came
    together with the line.
    """
    ended = []

    def end(how):
        ended.append(True)
        how()

    timers = [threading.Timer(seconds + grace, end, [process.kill])]
    if grace:
        timers.append(threading.Timer(seconds, end, [process.terminate]))
    for timer in timers:
        timer.start()
    try:
        text, _ = process.communicate()
    finally:
        for timer in timers:
            timer.cancel()
    return text, bool(ended)
