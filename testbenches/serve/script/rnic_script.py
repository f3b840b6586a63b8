# SPDX-License-Identifier: Apache-2.0
"""Verbs by command: a client of `rnic serve --app script`, for any Python 3 program; nothing but this file is needed.

    import rnic_script
    s = rnic_script.connect("unix:/tmp/script")     # or tcp:127.0.0.1:7000
    pd = s.alloc_pd()["pd"]                         # every command is a method; its fields are keywords
    mr = s.reg_mr(pd=pd, bytes=4096, access=["local_write", "remote_read"])
    cq = s.create_cq(entries=16)["cq"]
    qp = s.create_qp(type="rc", pd=pd, send_cq=cq)
    ...                                             # s.ready(...) takes the queue pair to RTS
    s.send(qp["qp"], "rdma_write", [rnic_script.sge(mr)], remote_addr=there, rkey=key)
    print(s.one(cq)["status"])

An answer is a dictionary; one that is not ok is raised as `refused`. README.md beside this file has all commands.
"""
import json
import socket
import time
import zlib

TIMEOUT, RETRIES, RNR_RETRIES, RNR_TIMER = 14, 7, 7, 12
ALL_REMOTE = ["local_write", "remote_write", "remote_read", "remote_atomic"]


class refused(Exception):
    """A command that was not done. `errno`: the name of the verb's error, or None when it was not tried."""

    def __init__(self, answer):
        super().__init__(answer.get("error", "no reason"))
        self.answer, self.errno = answer, answer.get("errno")


class script:
    """`call` does one command; what has a name of its own below is made of several, or has what mostly goes with it."""

    seconds = 90  # until an answer has to be there: more than any wait that a command may ask for

    def __init__(self, reader, writer, closer=None):
        self.reader, self.writer, self.closer = reader, writer, closer
        self.number = 0

    def call(self, do, **fields):
        self.number += 1
        self.writer.write(json.dumps(dict(fields, do=do, id=self.number)).encode() + b"\n")
        self.writer.flush()
        line = self.reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the server ended while it was asked to %s" % do)
        answer = json.loads(line)
        if not answer["ok"]:
            raise refused(answer)
        if answer["id"] != self.number:
            raise ConnectionError("answer %s to command %d" % (answer, self.number))
        return answer

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda **fields: self.call(name, **fields)

    def close(self):
        self.writer.close()
        self.reader.close()
        if self.closer is not None:
            self.closer()

    # ------------------------------------------------------------ queue pairs

    def to_init(self, qp, access=(), qkey=None):
        """`qkey`: of a UD queue pair."""
        last = {"qp_access_flags": list(access)} if qkey is None else {"qkey": qkey}
        self.call("modify_qp", qp=qp, qp_state="init", pkey_index=0, port_num=1, **last)

    def to_rtr(self, qp, kind, to=None, **more):
        """`to`: {"gid", "qpn", "psn"} of the other side; none for UD."""
        fields = {"qp_state": "rtr"}
        if kind != "ud":
            fields.update(path_mtu=1024, dest_qp_num=to["qpn"], rq_psn=to["psn"], ah_attr={"dgid": to["gid"]})
        if kind in ("rc", "xrc_recv"):
            fields.update(max_dest_rd_atomic=4, min_rnr_timer=RNR_TIMER)
        self.call("modify_qp", qp=qp, **dict(fields, **more))

    def to_rts(self, qp, kind, psn=0, **more):
        fields = {"qp_state": "rts", "sq_psn": psn}
        if kind in ("rc", "xrc_send"):
            fields.update(timeout=TIMEOUT, retry_cnt=RETRIES, rnr_retry=RNR_RETRIES, max_rd_atomic=4)
        if kind == "xrc_recv":
            fields.update(timeout=TIMEOUT)
        self.call("modify_qp", qp=qp, **dict(fields, **more))

    def ready(self, qp, kind, to=None, psn=0, access=(), qkey=None, rtr=(), rts=()):
        """From RESET to RTS; `rtr`, `rts`: attributes that are to be others than mostly."""
        self.to_init(qp, access, qkey)
        self.to_rtr(qp, kind, to, **dict(rtr))
        self.to_rts(qp, kind, psn, **dict(rts))

    # ------------------------------------------------------------ requests and completions

    def send(self, qp, opcode, sges=(), wr_id=1, flags=("signaled",), **more):
        request = dict(more, opcode=opcode, wr_id=wr_id, flags=list(flags))
        if sges:
            request["sge"] = list(sges)
        return self.call("post_send", qp=qp, requests=[request])

    def receive(self, qp, sges=(), wr_id=100, copies=1):
        return self.call("post_recv", qp=qp, requests=[{"wr_id": wr_id, "sge": list(sges)}], copies=copies)

    def receive_shared(self, srq, sges=(), wr_id=100, copies=1):
        return self.call("post_srq_recv", srq=srq, requests=[{"wr_id": wr_id, "sge": list(sges)}], copies=copies)

    def completions(self, cq, count=1, timeout_ms=5000):
        """So many completions, or those that there are when the time is over."""
        return self.call("poll", cq=cq, count=count, at_least=count, timeout_ms=timeout_ms)["completions"]

    def one(self, cq, timeout_ms=5000):
        """The next completion, or None."""
        found = self.completions(cq, 1, timeout_ms)
        return found[0] if found else None


def sge(mr, offset=0, length=None, **more):
    """Of an answer to reg_mr, or of a region's name."""
    entry = dict(more, mr=mr if isinstance(mr, str) else mr["mr"], offset=offset)
    if length is not None:
        entry["length"] = length
    return entry


def connect(where, seconds=30):
    """`unix:PATH` or `tcp:HOST:PORT`; tries again until the server is there."""
    kind, _, rest = where.partition(":")
    end = time.monotonic() + seconds
    while True:
        s = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
        try:
            host, _, port = rest.rpartition(":")
            s.connect(rest if kind == "unix" else (host, int(port)))
            break
        except OSError:
            s.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    s.settimeout(script.seconds)
    return script(s.makefile("rb"), s.makefile("wb"), s.close)


def pattern(seed, count):
    """The bytes that `fill` with this seed leaves."""
    state, out = seed, bytearray()
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xffffffff
        out.append(state >> 24)
    return bytes(out)


def pattern_crc(seed, count):
    return zlib.crc32(pattern(seed, count))
