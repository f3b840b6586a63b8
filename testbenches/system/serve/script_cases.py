# SPDX-License-Identifier: Apache-2.0
"""`--app script`: verbs between two adapters, and clients of its socket that make every mistake there is."""
import json
import os
import random
import socket
import subprocess
import sys
import time

from served import FOLDER, MODEL4, PEER4, PEER_MAC, RNIC, expect, path, serve

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../serve/script"))
import conformance  # noqa: E402
import rnic_script  # noqa: E402
from rnic_script import refused, sge  # noqa: E402


class two:
    """Two hosts on a cable, each with its commands."""

    def __init__(self, *arguments):
        links = ("datagram:unix:%s,%s" % (path("x"), path("y")), "datagram:unix:%s,%s" % (path("y"), path("x")))
        self.servers = [serve("a", links[0], "--app", "script", "--script", "unix:" + path("sa"), *arguments,
                              addresses=(PEER4,), mac=PEER_MAC),
                        serve("b", links[1], "--app", "script", "--script", "unix:" + path("sb"), *arguments,
                              addresses=(MODEL4,))]
        self.a, self.b = (rnic_script.connect("unix:" + path(n)) for n in ("sa", "sb"))

    def end(self):
        self.a.close()
        self.b.close()
        for s in self.servers:
            expect(s.wait(30) == 0, s.text)
            expect(s.result["runs"][0]["commands"] > 0, s.result["runs"])


def conform():
    """Every row of the table, one model against another."""
    t = two()
    a, b = conformance.end("requester", t.a, PEER4), conformance.end("responder", t.b, MODEL4)
    failed = []
    for name in conformance.ROWS:
        wrong = conformance.run(name, a, b)
        print("%-40s %s" % (name, "; ".join(wrong) or "ok"), flush=True)
        failed += [name + ": " + w for w in wrong]
    t.end()
    expect(not failed, "\n".join(failed))


def xrc(a, b):
    """One shared receive queue in a domain, which the sender names."""
    pd, cq = b.alloc_pd()["pd"], b.create_cq(entries=16)["cq"]
    domain = b.open_xrcd()["xrcd"]
    srq = b.create_srq(pd=pd, max_wr=8, xrcd=domain, cq=cq)
    mr = b.reg_mr(pd=pd, bytes=4096, access=["local_write"])
    receiver = b.create_qp(type="xrc_recv", xrcd=domain)
    own = a.alloc_pd()["pd"]
    send_cq = a.create_cq(entries=16)["cq"]
    data = a.reg_mr(pd=own, bytes=4096, access=[])
    sender = a.create_qp(type="xrc_send", pd=own, send_cq=send_cq)
    a.ready(sender["qp"], "xrc_send", {"gid": MODEL4, "qpn": receiver["qpn"], "psn": 0}, psn=77)
    b.ready(receiver["qp"], "xrc_recv", {"gid": PEER4, "qpn": sender["qpn"], "psn": 77})
    a.fill(mr=data["mr"], seed=4)
    b.receive_shared(srq["srq"], [sge(mr)])
    a.send(sender["qp"], "send", [sge(data, 0, 3000)], remote_srqn=srq["srqn"])
    expect(a.one(send_cq)["status"] == "success", "the XRC request")
    wc = b.one(cq)
    expect(wc is not None and wc["byte_len"] == 3000, wc)
    expect(b.crc32(mr=mr["mr"], bytes=3000)["crc32"] == rnic_script.pattern_crc(4, 3000), "what XRC has brought")


def managed(a, b):
    """A connection by the connection manager, and one that is refused."""
    b.cm_listen(port=7000)
    ends = []
    for s in (a, b):
        pd, cq = s.alloc_pd()["pd"], s.create_cq(entries=16)["cq"]
        ends.append((s.create_qp(type="rc", pd=pd, send_cq=cq), cq, s.reg_mr(pd=pd, bytes=64, access=["local_write"])))
        s.to_init(ends[-1][0]["qp"])
    (qa, ca, ma), (qb, cb, mb) = ends
    asked = {"port": 7000, "qp": qa["qp"], "psn": 5, "ah_attr": {"dgid": MODEL4}, "private_data": "616263"}
    a.cm_connect(**asked)
    request = b.cm_event(timeout_ms=5000)
    expect(request["event"] == "request" and request["qpn"] == qa["qpn"], request)
    expect(request["private_data"].startswith("616263"), request)
    b.to_rtr(qb["qp"], "rc", {"gid": request["from"], "qpn": request["qpn"], "psn": 6})
    b.to_rts(qb["qp"], "rc", psn=request["psn"])
    b.receive(qb["qp"], [sge(mb)])
    b.cm_accept(connection=request["connection"], qp=qb["qp"], psn=6)
    reply = a.cm_event(timeout_ms=5000)
    expect(reply["event"] == "reply" and reply["qpn"] == qb["qpn"] and reply["psn"] == 6, reply)
    # The PSN of a message is the one that its receiver's peer begins to send with.
    a.to_rtr(qa["qp"], "rc", {"gid": MODEL4, "qpn": reply["qpn"], "psn": 5})
    a.to_rts(qa["qp"], "rc", psn=reply["psn"])
    a.cm_confirm(connection=reply["connection"])
    expect(b.cm_event(timeout_ms=5000)["event"] == "established", "the connection")
    a.send(qa["qp"], "send", [sge(ma)])
    expect((a.one(ca) or {}).get("status") == "success" and b.one(cb)["byte_len"] == 64, "a message over it")
    a.cm_disconnect(connection=reply["connection"])
    expect(b.cm_event(timeout_ms=5000)["event"] == "disconnect_request", "the wish to end")
    b.cm_disconnect(connection=request["connection"])
    expect(a.cm_event(timeout_ms=5000)["event"] == "disconnected", "the end")
    a.cm_connect(**dict(asked, port=7001))
    said = a.cm_event(timeout_ms=5000)
    expect(said["event"] == "rejected" and said["reason"] == 8, said)


def kinds():
    t = two()
    xrc(t.a, t.b)
    managed(t.a, t.b)
    t.end()


# ---------------------------------------------------------------- clients that get it wrong

WRONG = [  # a command, and words of the answer
    ("nonsense", "not a JSON object"),
    ("{", "not a JSON object"),
    ("[1,2]", "expected an object"),
    ("7", "expected an object"),
    ("null", "expected an object"),
    ('{"do":1}', "do: expected a text"),
    ('{"id":{},"do":"time"}', "id: expected a number or a text"),
    ('{"id":7}', "do: is missing"),
    ('{"do":"fly"}', "no command called fly"),
    ('{"do":"time","x":1}', "x: there is no such field"),
    ('{"do":"create_cq"}', "entries: is missing"),
    ('{"do":"create_cq","entries":0}', "entries: expected an integer from 1 to"),
    ('{"do":"create_cq","entries":-1}', "not -1"),
    ('{"do":"create_cq","entries":1.5}', "not 1.5"),
    ('{"do":"create_cq","entries":"8"}', 'not "8"'),
    ('{"do":"create_cq","entries":18446744073709551615}', "entries: expected an integer"),
    ('{"do":"create_cq","entries":1e999}', "a number is too large"),
    ('{"do":"reg_mr","pd":"nobody","bytes":1}', "pd: there is none called nobody"),
    ('{"do":"reg_mr","pd":"p","bytes":1000000000000}', "bytes: expected an integer from 1 to 268435356"),
    ('{"do":"reg_mr","pd":"p","bytes":8,"access":["fly"]}', "access: expected one of local_write"),
    ('{"do":"reg_mr","pd":"p","bytes":8,"access":"local_write"}', "access: expected a list"),
    ('{"do":"reg_mr","pd":"p","bytes":8,"access":["remote_write"]}', "reg_mr: Invalid argument"),
    ('{"do":"alloc_pd","name":"p"}', "name: there is one called p"),
    ('{"do":"write","mr":"m","offset":90,"hex":"00112233445566778899aabb"}', "more than the 100 of the region"),
    ('{"do":"write","mr":"m","hex":"0g"}', "hex: expected pairs"),
    ('{"do":"read","mr":"m","offset":101}', "offset: expected an integer from 0 to 100"),
    ('{"do":"fill","mr":"m","bytes":101,"byte":1}', "bytes: expected an integer from 0 to 100"),
    ('{"do":"dealloc_pd","pd":"p"}', "Device or resource busy"),
    ('{"do":"destroy_cq","cq":"c"}', "Device or resource busy"),
    ('{"do":"create_qp","type":"rd","pd":"p","send_cq":"c"}', "type: expected one of rc, uc, ud"),
    ('{"do":"create_qp","type":"rc","pd":"p","send_cq":"c","max_send_wr":100000000}', "max_send_wr: expected"),
    ('{"do":"modify_qp","qp":"q","qp_state":"rts"}', "modify_qp of rc in reset to rts: Invalid argument"),
    ('{"do":"modify_qp","qp":"q","path_mtu":1000}', "path_mtu: expected 256, 512"),
    ('{"do":"modify_qp","qp":"q","ah_attr":{"dgid":"x"}}', "ah_attr.dgid: expected an IPv4 or IPv6 address"),
    ('{"do":"modify_qp","qp":"q","ah_attr":{"dgid":"10.0.0.9","dlid":3}}', "ah_attr.dlid: there is no such field"),
    ('{"do":"post_send","qp":"q","requests":[{"opcode":"send"}]}', "qp: is in reset: expected rts"),
    ('{"do":"post_recv","qp":"q","requests":[{}]}', "qp: is in reset: expected init"),
    ('{"do":"post_send","qp":"u","requests":[]}', "requests: expected a list of 1 to 1024"),
    ('{"do":"post_send","qp":"u","requests":[{"opcode":"send"}]}', "requests[0].ah: is missing"),
    ('{"do":"post_send","qp":"u","requests":[{"opcode":"send","ah":"h","remote_qpn":1,"remote_qkey":1,'
     '"sge":[{"addr":4096,"length":8,"lkey":0}],"flags":["inline"]}]}', "lies in no region"),
    ('{"do":"post_send","qp":"u","requests":[{"opcode":"rdma_read","ah":"h","remote_qpn":1,"remote_qkey":1,'
     '"remote_addr":0,"rkey":0}]}', "post_send: requests[0]: Invalid argument"),
    ('{"do":"post_recv","qp":"u","requests":[{"sge":[{"mr":"m","len":4}]}]}', "requests[0].sge[0].len: there is no"),
    ('{"do":"poll","cq":"c","timeout_ms":60001}', "timeout_ms: expected an integer from 0 to 60000"),
    ('{"do":"resolve","gid":"10.0.0.77","gid_index":100}', "there is no such GID"),
    ('{"do":"cm_accept","connection":5,"qp":"q","psn":1}', "connection: there is none of this number"),
    ('{"do":"cm_listen","port":0}', "port: expected an integer from 1 to 65535"),
    ('{"do":"create_srq","pd":"p","max_wr":4,"xrcd":"x"}', "xrcd: there is none called x"),
    ('{"do":"alloc_mw","pd":"p","type":3}', "type: expected an integer from 1 to 2"),
    ('{"do":"\xff"}', "not a JSON object"),
    ('{"do":"' + "f" * 70000 + '"}', "do: expected a text of at most 64 bytes"),
    ("x" * 1100000, "a line is longer than 1048576 bytes"),
    ("[" * 500000, "not a JSON object"),
]


def furnish(s):
    """Objects that the commands of WRONG speak of."""
    s.alloc_pd(name="p")
    s.reg_mr(name="m", pd="p", bytes=100, access=["local_write"])
    s.create_cq(name="c", entries=8)
    s.create_qp(name="q", type="rc", pd="p", send_cq="c")
    s.create_qp(name="u", type="ud", pd="p", send_cq="c")
    s.ready("u", "ud", qkey=5)
    s.create_ah(name="h", pd="p", ah_attr={"dgid": PEER4, "dmac": PEER_MAC})


def raw(s, text):
    s.writer.write(text.encode("latin-1") + b"\n")
    s.writer.flush()
    return json.loads(s.reader.readline())


def mistakes(s):
    furnish(s)
    for text, words in WRONG:
        answer = raw(s, text)
        expect(answer["ok"] is False and words in answer["error"], "%s: %s" % (text[:100], answer))
    expect(s.call("time")["now_us"] > 0, "time after mistakes")
    expect(raw(s, '{"id":"x","do":"fly"}')["id"] == "x", "the id of a command that is refused")


def noise(where, rounds):
    """Clients that say pieces of good commands, mixed, and leave when they like."""
    rng = random.Random(11)
    texts = [t.encode("latin-1") for t, _ in WRONG if len(t) < 1000]
    texts += [b'{"do":"alloc_pd"}', b'{"do":"create_cq","entries":4}', b'{"do":"poll","cq":"cq1","timeout_ms":60000}',
              b'{"do":"reg_mr","pd":"pd1","bytes":1000000}', b'{"do":"destroy_all"}', b'{"do":"wait","timeout_ms":60000}']
    for _ in range(rounds):
        s = rnic_script.connect(where)
        for _ in range(rng.randrange(12)):
            t = bytearray(rng.choice(texts))
            for _ in range(rng.randrange(3)):
                t[rng.randrange(len(t))] = rng.randrange(256)
            s.writer.write(bytes(t[:rng.randrange(1, len(t) + 1)] if rng.random() < 0.1 else t) + b"\n")
        if rng.random() < 0.5:
            s.writer.write(b'{"do":"ti')
        try:
            s.writer.flush()
            s.close()
        except OSError:
            pass


def open_memory(where):
    """What a client has left is free again: each of ten takes all that one may have."""
    for _ in range(10):
        s = rnic_script.connect(where)
        s.alloc_pd(name="p")
        s.reg_mr(pd="p", bytes=256 << 20)
        try:
            s.reg_mr(pd="p", bytes=1)
            expect(False, "more memory than a client may have")
        except refused as e:
            expect("268435456" in str(e), e)
        s.close()


def endless(where):
    """Objects until there are no more: an answer says so, and the next client has them all."""
    for _ in range(2):
        s = rnic_script.connect(where)
        s.alloc_pd(name="p")
        s.create_cq(name="c", entries=1)
        try:
            for _ in range(5000):
                s.create_qp(type="rc", pd="p", send_cq="c", max_send_wr=16000)
            expect(False, "there was no end of queue pairs")
        except refused as e:
            expect("Cannot allocate memory" in str(e) or "4096 objects" in str(e), e)
        s.close()


def hostile():
    where = "unix:" + path("script")
    server = serve("model", "datagram:unix:%s,%s" % (path("x"), path("y")), "--app", "script", "--script", where,
                   "--repeat", 0)
    mistakes(rnic_script.connect(where))
    s = rnic_script.connect(where)  # the names of the client before are free
    furnish(s)
    begun = time.monotonic()
    s.writer.write(b'{"do":"poll","cq":"c","timeout_ms":60000}\n')
    s.writer.flush()
    s.close()
    mistakes(rnic_script.connect(where))
    expect(time.monotonic() - begun < 30, "a client that is gone was waited for")
    noise(where, 60)
    open_memory(where)
    endless(where)
    last = rnic_script.connect(where)
    furnish(last)
    last.close()
    server.stop()
    expect(all(r["ok"] for r in server.result["runs"]), server.result["runs"])


def standard_input():
    """Commands from a pipe and answers to another, with nothing else among them."""
    commands = [{"id": 1, "do": "address"}, {"id": 2, "do": "alloc_pd"}, {"id": 3, "do": "wait", "timeout_ms": 200}]
    done = subprocess.run([RNIC, "serve", "--link", "datagram:unix:%s,%s" % (path("x"), path("y")), "--ip", MODEL4, "--app",
                           "script", "--script", "-", "--repeat", "0"], input="".join(json.dumps(c) + "\n" for c in commands) + '{"do":',
                          capture_output=True, text=True, timeout=60)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    expect(done.returncode == 0 and [a.get("id") for a in answers] == [1, 2, 3, None], done)
    expect(all(a["ok"] for a in answers[:3]) and "has no end" in answers[3]["error"], answers)
    expect("serving" in done.stderr and answers[0]["gids"], done.stderr)


def options():
    link = ["--link", "datagram:unix:%s,%s" % (path("x"), path("y"))]
    for arguments, words in (
            (["--app", "script"], "expected --script once for each --link"),
            (["--script", "-"], "expected --script once for each --link"),
            (["--app", "script", "--script", "-", "--server"], "takes neither --server nor --client"),
            (["--app", "script", "--script", "x"], "--script x: expected unix:PATH, tcp:HOST:PORT or -"),
            (["--app", "script", "--script", "tcp:127.0.0.1:99999"], "the port is not 0 to 65535"),
            (["--app", "script", "--script", "unix:" + "x" * 200], "a path of 1 to 107 characters"),
            (["--app", "script", "--script", "unix:/nowhere/at/all"], "No such file or directory")):
        done = subprocess.run([RNIC, "serve", *link, *arguments], capture_output=True, text=True, timeout=30,
                              stdin=subprocess.DEVNULL)
        expect(done.returncode == 2 and words in done.stderr, "%s: %s" % (arguments, done))
    server = serve("model", link[1], "--app", "script", "--script", "tcp:127.0.0.1:0")
    line = server.process.stdout.readline()
    expect(line.startswith("commands come from tcp:127.0.0.1:"), line)
    s = rnic_script.connect(line.split()[-1])
    expect(s.call("address")["mac"] == "02:00:00:00:00:02", "the address")
    waiting = socket.create_connection(("127.0.0.1", int(line.rsplit(":", 1)[1])))
    s.close()
    expect(server.wait(30) == 0, server.text)
    waiting.close()


def script():
    standard_input()
    options()
    kinds()


# ---------------------------------------------------------------- programs that mean nothing

class wanderer:
    """Makes, uses and destroys objects at random; nothing but an error answer may come of it."""

    ACCESS = ["local_write", "remote_write", "remote_read", "remote_atomic", "mw_bind"]
    STATES = ["reset", "init", "rtr", "rts", "sqd", "sqe", "err"]

    def __init__(self, s, gid, seed):
        self.s, self.gid, self.rng = s, gid, random.Random(seed)
        self.have = {kind: [] for kind in ("pd", "mr", "mw", "cq", "srq", "xrcd", "qp", "ah")}
        self.known = [(0x1000, 0x1234)]  # addresses and keys, of the other side as well
        self.numbers = [1]
        self.refused = self.done = 0

    def some(self, kind):
        return self.rng.choice(self.have[kind]) if self.have[kind] and self.rng.random() < 0.98 else "nothing"

    def try_(self, do, **fields):
        try:
            answer = self.s.call(do, **fields)
            self.done += 1
            return answer
        except refused:
            self.refused += 1
            return {}

    def rights(self):
        return [w for w in self.ACCESS if self.rng.random() < 0.7]

    def sges(self):
        r = self.rng
        return [dict({"mr": self.some("mr"), "offset": r.choice((0, 1, 100, 4000)), "length": r.choice((0, 1, 8, 64, 3000, 70000))},
                     **({"lkey": 77} if r.random() < 0.05 else {})) for _ in range(r.choice((0, 1, 1, 1, 2, 4)))]

    def make(self):
        r = self.rng
        kind = r.choice(list(self.have))
        if len(self.have[kind]) > 12:
            return self.destroy(kind)
        if kind == "pd":
            answer = self.try_("alloc_pd")
        elif kind == "mr":
            of = {"of": self.some("mr")} if r.random() < 0.3 else {"bytes": r.choice((1, 8, 4096, 5000, 100000))}
            answer = self.try_("reg_mr", pd=self.some("pd"), access=self.rights(), **of)
            if answer:
                self.known.append((answer["addr"], answer["rkey"]))
        elif kind == "mw":
            answer = self.try_("alloc_mw", pd=self.some("pd"), type=r.choice((1, 2)))
        elif kind == "cq":
            answer = self.try_("create_cq", entries=r.choice((1, 3, 64, 300)))
        elif kind == "srq":
            xrc = {"xrcd": self.some("xrcd"), "cq": self.some("cq")} if r.random() < 0.4 else {}
            answer = self.try_("create_srq", pd=self.some("pd"), max_wr=r.choice((1, 10, 100)), max_sge=r.choice((1, 3)), **xrc)
            self.numbers += [answer["srqn"]] if answer else []
        elif kind == "xrcd":
            answer = self.try_("open_xrcd")
        elif kind == "ah":
            answer = self.try_("create_ah", pd=self.some("pd"), ah_attr={"dgid": self.gid, "sgid_index": r.choice((3, 3, 2, 99))})
        else:
            answer = self.make_qp()
        if answer:
            self.have[kind].append(answer[kind])

    def make_qp(self):
        r = self.rng
        kind = r.choice(("rc", "rc", "uc", "ud", "xrc_send", "xrc_recv"))
        if kind == "xrc_recv":
            answer = self.try_("create_qp", type=kind, xrcd=self.some("xrcd"))
        else:
            more = {"srq": self.some("srq")} if r.random() < 0.3 and kind != "xrc_send" else {}
            if kind != "xrc_send":
                more["recv_cq"] = self.some("cq")
            answer = self.try_("create_qp", type=kind, pd=self.some("pd"), send_cq=self.some("cq"), max_send_wr=r.choice((1, 16, 100)),
                               max_send_sge=r.choice((1, 4)), max_inline_data=r.choice((0, 64)), sq_sig_all=r.random() < 0.5, **more)
        if answer:
            self.numbers.append(answer["qpn"])
            if r.random() < 0.9:
                to = {"gid": self.gid, "qpn": r.choice(self.numbers), "psn": 0}
                try:
                    self.s.ready(answer["qp"], kind, to, 0, self.rights(), qkey=5 if kind == "ud" else None,
                                 rts={"timeout": r.choice((8, 12)), "retry_cnt": 2, "rnr_retry": 1} if kind in ("rc", "xrc_send") else ())
                except refused:
                    self.refused += 1
        return answer

    def destroy(self, kind):
        verbs = {"pd": "dealloc_pd", "mr": "dereg_mr", "mw": "dealloc_mw", "xrcd": "close_xrcd"}
        name = self.some(kind)
        if self.try_(verbs.get(kind, "destroy_" + kind), **{kind: name}):
            self.have[kind].remove(name)

    def post(self):
        r = self.rng
        if r.random() < 0.3:
            target = {"post_recv": "qp", "post_srq_recv": "srq"}
            do = r.choice(list(target))
            return self.try_(do, **{target[do]: self.some(target[do])}, requests=[{"sge": self.sges()}], copies=r.choice((1, 1, 5)))
        requests = []
        for _ in range(r.choice((1, 1, 3))):
            address, key = r.choice(self.known)
            opcode = r.choice(("send", "send", "send_with_imm", "rdma_write", "rdma_write", "rdma_write_with_imm", "rdma_read",
                               "rdma_read", "atomic_cmp_and_swp", "atomic_fetch_and_add", "masked_fetch_and_add", "local_inv",
                               "send_with_inv", "bind_mw"))
            q = {"opcode": opcode, "flags": [f for f in ("signaled", "fence", "solicited", "inline") if r.random() < 0.3]}
            if opcode == "bind_mw":
                q.update(mw=self.some("mw"), mr=self.some("mr"), addr=address, length=r.choice((0, 8, 4096)), rkey=key + 1, access=self.rights())
            else:
                q["sge"] = self.sges()
            if opcode.startswith(("rdma", "atomic", "masked")):
                q.update(remote_addr=(address + r.choice((0, 0, 8, 4, 2**64 - 9))) % 2**64, rkey=key)
            if opcode.startswith(("atomic", "masked")):
                q["compare_add"] = 1
            if opcode.endswith("imm"):
                q["imm"] = 5
            if opcode.endswith("_inv"):
                q["invalidate_rkey"] = key
            kind = r.random()
            if kind < 0.2:
                q.update(ah=self.some("ah"), remote_qpn=r.choice(self.numbers), remote_qkey=5)
            elif kind < 0.4:
                q["remote_srqn"] = r.choice(self.numbers) & 0xffffff
            requests.append(q)
        return self.try_("post_send", qp=self.some("qp"), requests=requests)

    def step(self):
        r = self.rng
        what = r.random()
        if what < 0.25:
            self.make()
        elif what < 0.31:
            self.destroy(r.choice(list(self.have)))
        elif what < 0.75:
            self.post()
        elif what < 0.9:
            self.try_("poll", cq=self.some("cq"), timeout_ms=r.choice((0, 0, 1)))
        elif what < 0.94:
            self.try_("modify_qp", qp=self.some("qp"), qp_state=r.choice(self.STATES))
        elif what < 0.97:
            self.try_("query_qp", qp=self.some("qp"))
        else:
            self.try_("async_event")


def wander():
    t = two("--repeat", 0)
    for seed in range(6):
        a, b = wanderer(t.a, MODEL4, 2 * seed), wanderer(t.b, PEER4, 2 * seed + 1)
        for _ in range(400):
            a.step()
            b.step()
            if len(a.known) < 200:
                a.known, b.known = a.known + b.known[-2:], b.known + a.known[-2:]
                a.numbers, b.numbers = a.numbers + b.numbers[-2:], b.numbers + a.numbers[-2:]
        print("seed %d: %d commands done, %d refused" % (seed, a.done + b.done, a.refused + b.refused), flush=True)
        expect(min(a.done, b.done) > 100, "hardly anything was done")
        t.a.close()
        t.b.close()
        t.a, t.b = (rnic_script.connect("unix:" + path(n)) for n in ("sa", "sb"))
    conformance_after = conformance.run("mixed_verbs", conformance.end("a", t.a, PEER4), conformance.end("b", t.b, MODEL4))
    expect(not conformance_after, conformance_after)
    for s in t.servers:
        s.stop()
        expect(all(r["ok"] for r in s.result["runs"]), s.result["runs"])
