# SPDX-License-Identifier: Apache-2.0
"""What the verbs promise of two queue pairs that meet, whoever they belong to: rows that a requester and a responder do
together, driven through rnic_script or anything that takes the same commands.

Each row is a function of the two ends. What it says of completions is IBA volume 1, 9.7 and 9.8 (NAKs and their
requester's errors, table 58 and following), 10.7.3 (completion errors) and 11.6.2 (their names in libibverbs).
"""
import rnic_script
from rnic_script import ALL_REMOTE, pattern_crc, sge

BYTES = 16384
GOOD, FLUSHED = "success", "wr_flush_err"
ROWS = {}


def row(f):
    ROWS[f.__name__] = f
    return f


class end:
    """One side: its script, the address of its port, and after `open` a queue pair with its queues and a region."""

    def __init__(self, name, script, gid, timeout=16):
        self.name, self.s, self.gid, self.timeout = name, script, gid, timeout
        self.psn, self.wrong = 0x123, []

    def open(self, kind, shared=False, region=ALL_REMOTE, inline=0):
        s = self.s
        self.kind = kind
        self.psn = self.psn * 5 + 77 & 0xffffff
        self.pd = s.alloc_pd()["pd"]
        self.mr = s.reg_mr(pd=self.pd, bytes=BYTES, access=list(region))
        self.sq, self.rq = s.create_cq(entries=64)["cq"], s.create_cq(entries=64)["cq"]
        more = {"max_inline_data": inline} if inline else {}
        self.srq = s.create_srq(pd=self.pd, max_wr=16, max_sge=1)["srq"] if shared else None
        if shared:
            more["srq"] = self.srq
        made = s.create_qp(type=kind, pd=self.pd, send_cq=self.sq, recv_cq=self.rq, max_send_sge=4, max_recv_sge=4,
                           max_send_wr=32, max_recv_wr=32, **more)
        self.qp, self.qpn = made["qp"], made["qpn"]

    def ready(self, other, access=ALL_REMOTE, qkey=None, rtr=(), rts=()):
        if self.kind == "rc":
            rts = dict({"timeout": self.timeout}, **dict(rts))
        self.s.ready(self.qp, self.kind, {"gid": other.gid, "qpn": other.qpn, "psn": other.psn}, self.psn, access, qkey,
                     rtr, rts)

    def expect(self, what, got, wanted):
        if got != wanted:
            self.wrong.append("%s: %s is %s, expected %s" % (self.name, what, got, wanted))

    # Requests, and what comes of them.
    def send(self, opcode, *sges, wr_id=1, status=GOOD, **more):
        """Posts and waits; gives the completion."""
        self.post(opcode, *sges, wr_id=wr_id, **more)
        return self.sent(wr_id, status)

    def post(self, opcode, *sges, wr_id=1, **more):
        self.s.send(self.qp, opcode, sges, wr_id, **more)

    def sent(self, wr_id=1, status=GOOD, timeout_ms=10000):
        return self.completed(self.sq, wr_id, status, timeout_ms, "request")

    def receive(self, *sges, wr_id=100, copies=1):
        if self.srq is None:
            self.s.receive(self.qp, sges, wr_id, copies)
        else:
            self.s.receive_shared(self.srq, sges, wr_id, copies)

    def received(self, wr_id=100, status=GOOD, **fields):
        wc = self.completed(self.rq, wr_id, status, 10000, "receive")
        for key, value in fields.items():
            self.expect("receive %d: %s" % (wr_id, key), wc.get(key), value)
        return wc

    def completed(self, cq, wr_id, status, timeout_ms, what):
        wc = self.s.one(cq, timeout_ms) or {}
        self.expect("status of %s %d" % (what, wr_id), wc.get("status", "no completion"), status)
        if wc:
            self.expect("number of %s" % what, wc["wr_id"], wr_id)
        return wc

    def nothing(self, timeout_ms=100):
        """No receive has completed."""
        self.expect("a receive", self.s.one(self.rq, timeout_ms), None)

    def state(self, wanted):
        self.expect("state of the queue pair", self.s.query_qp(qp=self.qp)["qp_state"], wanted)

    # Bytes.
    def part(self, offset, length):
        return sge(self.mr, offset, length)

    def fill(self, seed, offset, length):
        self.s.fill(mr=self.mr["mr"], offset=offset, bytes=length, seed=seed)

    def has(self, seed, offset, length):
        self.expect("CRC of %d bytes at %d" % (length, offset),
                    self.s.crc32(mr=self.mr["mr"], offset=offset, bytes=length)["crc32"], pattern_crc(seed, length))

    def word(self, offset, value=None):
        """Eight bytes in the order of this machine, which both sides' processors share."""
        if value is not None:
            self.s.write(mr=self.mr["mr"], offset=offset, hex=value.to_bytes(8, "little").hex())
        return int.from_bytes(bytes.fromhex(self.s.read(mr=self.mr["mr"], offset=offset, bytes=8)["hex"]), "little")

    def at(self, offset=0):
        """Where the other side reads and writes."""
        return {"remote_addr": self.mr["addr"] + offset, "rkey": self.mr["rkey"]}

    def close(self):
        self.s.destroy_all()


def meet(a, b, kind="rc", region=ALL_REMOTE, access=ALL_REMOTE, shared=False, inline=0, rtr=(), rts=()):
    """Opens both; `region`, `access` and `shared` are of the responder, `rtr` too, `rts` and `inline` of the requester."""
    a.open(kind, inline=inline)
    b.open(kind, shared, region)
    a.ready(b, rts=rts)
    b.ready(a, access, rtr=rtr)


def halted(a, b):
    """After an error of a reliable connection: nothing of either side is done any more."""
    a.send("rdma_write", a.part(0, 8), wr_id=9, status=FLUSHED, **b.at())
    a.state("err")


# ---------------------------------------------------------------- lengths

@row
def send_fits(a, b):
    meet(a, b)
    for length in (0, 1, 255, 1024, 1025, 5000):
        a.fill(length, 0, length)
        b.receive(b.part(0, length))
        a.send("send", a.part(0, length))
        b.received(byte_len=length, opcode="recv")
        b.has(length, 0, length)


@row
def receive_too_short(a, b):
    meet(a, b)
    b.receive(b.part(0, 999))
    b.receive(b.part(0, 2000), wr_id=101)
    a.send("send", a.part(0, 1000), status="rem_inv_req_err")
    b.received(status="loc_len_err")
    b.received(101, FLUSHED)
    b.state("err")
    halted(a, b)


@row
def receive_of_several_parts(a, b):
    meet(a, b)
    a.fill(3, 0, 3000)
    b.receive(b.part(8000, 10), b.part(0, 1500), b.part(4000, 4000))
    a.send("send", a.part(0, 100), a.part(100, 2900))
    b.received(byte_len=3000)
    for (offset, length), first in zip(((8000, 10), (0, 1500), (4000, 1490)), (0, 10, 1510)):
        said = b.s.read(mr=b.mr["mr"], offset=offset, bytes=length)["hex"]
        b.expect("bytes from %d on" % first, said, rnic_script.pattern(3, 3000)[first:first + length].hex())


# ---------------------------------------------------------------- keys, rights, ranges

def refused_access(a, b, opcode, length=64, **more):
    """The responder says remote access error; its memory is as it was."""
    b.fill(8, 0, 4096)
    atomic = opcode.startswith("atomic")
    a.send(opcode, a.part(0, 8 if atomic else length), status="rem_access_err", **dict({"compare_add": 1} if atomic else {}, **more))
    b.has(8, 0, 4096)
    halted(a, b)


@row
def write_with_bad_key(a, b):
    meet(a, b)
    refused_access(a, b, "rdma_write", remote_addr=b.mr["addr"], rkey=b.mr["rkey"] ^ 0x5a00)


@row
def read_with_bad_key(a, b):
    meet(a, b)
    refused_access(a, b, "rdma_read", remote_addr=b.mr["addr"], rkey=b.mr["rkey"] ^ 1)


@row
def atomic_with_bad_key(a, b):
    meet(a, b)
    refused_access(a, b, "atomic_fetch_and_add", remote_addr=b.mr["addr"], rkey=b.mr["rkey"] ^ 1)


@row
def write_to_what_is_read_only(a, b):
    meet(a, b, region=["local_write", "remote_read"])
    refused_access(a, b, "rdma_write", **b.at())


@row
def read_of_what_is_write_only(a, b):
    meet(a, b, region=["local_write", "remote_write"])
    refused_access(a, b, "rdma_read", **b.at())


@row
def atomic_without_the_right(a, b):
    meet(a, b, region=["local_write", "remote_write", "remote_read"])
    refused_access(a, b, "atomic_cmp_and_swp", **b.at())


@row
def write_behind_the_end(a, b):
    meet(a, b)
    refused_access(a, b, "rdma_write", 64, **b.at(BYTES - 63))


@row
def read_before_the_beginning(a, b):
    meet(a, b)
    refused_access(a, b, "rdma_read", 64, **b.at(-1))


@row
def read_around_the_end_of_addresses(a, b):
    meet(a, b)
    refused_access(a, b, "rdma_read", 64, remote_addr=2**64 - 32, rkey=b.mr["rkey"])


@row
def write_after_deregistration(a, b):
    meet(a, b)
    other = b.s.reg_mr(pd=b.pd, of=b.mr["mr"], offset=4096, bytes=4096, access=list(ALL_REMOTE))
    a.send("rdma_write", a.part(0, 64), remote_addr=other["addr"], rkey=other["rkey"])
    b.s.dereg_mr(mr=other["mr"])
    refused_access(a, b, "rdma_write", remote_addr=other["addr"], rkey=other["rkey"])


@row
def region_of_another_domain(a, b):
    meet(a, b)
    pd = b.s.alloc_pd()["pd"]
    other = b.s.reg_mr(pd=pd, bytes=4096, access=list(ALL_REMOTE))
    refused_access(a, b, "rdma_write", remote_addr=other["addr"], rkey=other["rkey"])


@row
def no_bytes_need_no_key(a, b):
    """C9-88: R_Key and address of a request of no bytes are not looked at."""
    meet(a, b)
    a.send("rdma_write", remote_addr=5, rkey=0xbad00)
    a.state("rts")


@row
def queue_pair_without_rights(a, b):
    meet(a, b, access=[])
    a.send("rdma_write", a.part(0, 64), status="rem_inv_req_err", **b.at())
    halted(a, b)


@row
def atomic_across_its_alignment(a, b):
    meet(a, b)
    a.send("atomic_fetch_and_add", a.part(0, 8), compare_add=1, status="rem_inv_req_err", **b.at(4))
    halted(a, b)


# ---------------------------------------------------------------- the requester's and the responder's own mistakes

@row
def send_from_a_bad_local_key(a, b):
    meet(a, b)
    b.receive(b.part(0, 64))
    a.send("send", dict(a.part(0, 64), lkey=a.mr["lkey"] ^ 0x5a00), status="loc_prot_err")
    halted(a, b)


@row
def read_to_a_bad_local_key(a, b):
    meet(a, b)
    a.send("rdma_read", dict(a.part(0, 64), lkey=a.mr["lkey"] ^ 0x5a00), status="loc_prot_err", **b.at())
    halted(a, b)


@row
def receive_into_a_bad_local_key(a, b):
    meet(a, b)
    b.receive(dict(b.part(0, 64), lkey=b.mr["lkey"] ^ 0x5a00))
    a.send("send", a.part(0, 64), status="rem_op_err")
    b.received(status="loc_prot_err")
    b.state("err")


# ---------------------------------------------------------------- receiver not ready

@row
def late_receive(a, b):
    meet(a, b, rtr={"min_rnr_timer": 20})
    a.fill(6, 0, 3000)
    a.post("send", a.part(0, 3000))
    a.post("send", a.part(0, 500), wr_id=2)
    b.nothing(300)
    b.receive(b.part(0, 3000), b.part(12000, 100), wr_id=100)
    b.receive(b.part(8000, 500), wr_id=101)
    a.sent(1)
    a.sent(2)
    b.received(100, byte_len=3000)
    b.received(101, byte_len=500)
    b.has(6, 0, 3000)
    b.has(6, 8000, 500)


def exhausted(a, b, retries):
    meet(a, b, rtr={"min_rnr_timer": 20}, rts={"rnr_retry": retries})
    a.send("send", a.part(0, 100), status="rnr_retry_exc_err")
    halted(a, b)
    b.state("rts")


@row
def receiver_never_ready_no_retry(a, b):
    exhausted(a, b, 0)


@row
def receiver_never_ready_one_retry(a, b):
    exhausted(a, b, 1)


@row
def receiver_never_ready_two_retries(a, b):
    exhausted(a, b, 2)


@row
def immediate_without_receive(a, b):
    """RDMA WRITE with immediate needs a receive: it waits for it."""
    meet(a, b, rtr={"min_rnr_timer": 20})
    a.fill(4, 0, 2000)
    a.post("rdma_write_with_imm", a.part(0, 2000), imm=0xdeadbeef, **b.at(100))
    b.nothing(200)
    b.receive()
    a.sent()
    b.received(opcode="recv_rdma_with_imm", imm=0xdeadbeef, byte_len=2000)
    b.has(4, 100, 2000)


# ---------------------------------------------------------------- what works

@row
def mixed_verbs(a, b):
    """Every verb on one queue pair, all under way together; completions in order, bytes right on both sides."""
    meet(a, b, inline=64)
    b.fill(50, 12288, 2048)
    b.word(16000, 40)
    a.fill(51, 0, 6000)
    for i in range(3):
        b.receive(b.part(1000 * i, 1000), wr_id=100 + i)
    a.post("send", a.part(0, 900), wr_id=1)
    a.post("rdma_write", a.part(0, 3000), wr_id=2, **b.at(4000))
    a.post("rdma_read", a.part(8192, 2048), wr_id=3, **b.at(12288))
    a.post("send_with_imm", a.part(0, 1000), wr_id=4, imm=7)
    a.post("atomic_fetch_and_add", a.part(16000, 8), wr_id=5, compare_add=2, **b.at(16000))
    a.post("rdma_write_with_imm", a.part(3000, 1500), wr_id=6, imm=8, **b.at(7000))
    a.post("rdma_write", a.part(0, 60), wr_id=7, flags=["signaled", "inline"], **b.at(9000))
    a.post("atomic_cmp_and_swp", a.part(16008, 8), wr_id=8, compare_add=42, swap=99, **b.at(16000))
    for i in range(1, 9):
        a.sent(i)
    b.received(100, byte_len=900)
    b.received(101, byte_len=1000, imm=7)
    b.received(102, byte_len=1500, imm=8, opcode="recv_rdma_with_imm")
    b.has(51, 0, 900)
    b.has(51, 1000, 1000)
    b.has(51, 4000, 3000)
    b.has(51, 9000, 60)
    a.has(50, 8192, 2048)
    b.expect("the counter", b.word(16000), 99)
    a.expect("what fetch and add has found", a.word(16000), 40)
    a.expect("what compare and swap has found", a.word(16008), 42)


@row
def atomics(a, b):
    meet(a, b)
    b.word(64, 2**64 - 1)
    a.send("atomic_fetch_and_add", a.part(0, 8), compare_add=3, **b.at(64))
    a.expect("the value before", a.word(0), 2**64 - 1)
    b.expect("the sum", b.word(64), 2)
    a.send("atomic_cmp_and_swp", a.part(8, 8), compare_add=3, swap=77, **b.at(64))
    b.expect("a counter that was not equal", b.word(64), 2)
    a.send("atomic_cmp_and_swp", a.part(16, 8), compare_add=2, swap=77, **b.at(64))
    b.expect("a counter that was equal", b.word(64), 77)
    a.expect("the values before", [a.word(8), a.word(16)], [2, 2])


@row
def both_send_at_once(a, b):
    meet(a, b)
    for e, seed in ((a, 60), (b, 61)):
        e.fill(seed, 0, 4000)
        e.receive(e.part(8000, 4000), copies=4)
    for i in range(4):
        a.post("send", a.part(0, 4000), wr_id=i)
        b.post("send", b.part(0, 4000), wr_id=i)
    for e, seed in ((a, 61), (b, 60)):
        for i in range(4):
            e.sent(i)
            e.received(byte_len=4000)
        e.has(seed, 8000, 4000)


@row
def every_mtu(a, b):
    for mtu in (256, 512, 1024, 2048, 4096):
        path = {"path_mtu": mtu}
        a.open("rc")
        b.open("rc")
        a.ready(b, rtr=path)
        b.ready(a, rtr=path)
        a.fill(mtu, 0, 3 * mtu + 5)
        b.receive(b.part(1, 3 * mtu + 5))
        a.send("send", a.part(0, 3 * mtu + 5))
        b.received(byte_len=3 * mtu + 5)
        b.has(mtu, 1, 3 * mtu + 5)
        a.s.fill(mr=a.mr["mr"], byte=0)
        a.send("rdma_read", a.part(3, 3 * mtu + 5), **b.at(1))
        a.has(mtu, 3, 3 * mtu + 5)


@row
def more_reads_than_may_be_under_way(a, b):
    meet(a, b, rtr={"max_dest_rd_atomic": 1}, rts={"max_rd_atomic": 1})
    b.fill(30, 0, 8000)
    for i in range(8):
        a.post("rdma_read", a.part(1000 * i, 1000), wr_id=i, **b.at(1000 * i))
    a.post("atomic_fetch_and_add", a.part(8000, 8), wr_id=8, compare_add=1, **b.at(8000))
    for i in range(9):
        a.sent(i)
    a.has(30, 0, 8000)
    b.expect("the counter", b.word(8000), 1)


@row
def without_completions(a, b):
    """Of requests that are not signaled only the last one tells that all are done."""
    meet(a, b)
    a.fill(31, 0, 5000)
    for i in range(5):
        a.post("rdma_write", a.part(1000 * i, 1000), wr_id=i, flags=[], **b.at(1000 * i))
    a.send("rdma_write", wr_id=9, **b.at())
    b.has(31, 0, 5000)
    a.expect("a further completion", a.s.one(a.sq, 50), None)


@row
def fence(a, b):
    """What a READ brings is there when the fenced SEND behind it goes."""
    meet(a, b)
    b.fill(32, 0, 6000)
    b.receive(b.part(8000, 6000))
    a.post("rdma_read", a.part(0, 6000), **b.at())
    a.post("send", a.part(0, 6000), wr_id=2, flags=["signaled", "fence"])
    a.sent(1)
    a.sent(2)
    b.received(byte_len=6000)
    b.has(32, 8000, 6000)


@row
def shared_receives(a, b):
    meet(a, b, shared=True, rtr={"min_rnr_timer": 20})
    a.fill(9, 0, 2000)
    b.receive(b.part(0, 2000), wr_id=200)
    a.send("send", a.part(0, 2000))
    b.received(200, byte_len=2000)
    a.post("send", a.part(0, 700), wr_id=2)
    b.nothing(200)
    b.receive(b.part(4000, 700), wr_id=201)
    a.sent(2)
    b.received(201, byte_len=700)
    b.has(9, 0, 2000)
    b.has(9, 4000, 700)


@row
def invalidated_window(a, b):
    """A window of type 2: its key lets the peer in until the peer's SEND has invalidated it."""
    meet(a, b, region=ALL_REMOTE + ["mw_bind"])
    mw = b.s.alloc_mw(pd=b.pd, type=2)
    key = mw["rkey"] & ~0xff | (mw["rkey"] + 1) & 0xff
    b.send("bind_mw", mw=mw["mw"], mr=b.mr["mr"], addr=b.mr["addr"] + 4096, length=1024, rkey=key,
           access=["remote_write"])
    a.fill(12, 0, 1024)
    a.send("rdma_write", a.part(0, 1024), remote_addr=b.mr["addr"] + 4096, rkey=key)
    b.has(12, 4096, 1024)
    b.receive(b.part(0, 100))
    a.send("send_with_inv", a.part(0, 100), wr_id=2, invalidate_rkey=key)
    b.received(invalidated_rkey=key)
    a.send("rdma_write", a.part(0, 8), wr_id=3, remote_addr=b.mr["addr"] + 4096, rkey=key, status="rem_access_err")


# ---------------------------------------------------------------- without acknowledgements

@row
def unreliable_drops(a, b):
    """UC: what cannot be taken is dropped in silence, and what follows is taken."""
    meet(a, b, kind="uc")
    a.fill(70, 0, 3000)
    b.fill(71, 0, 4096)
    a.send("send", a.part(0, 3000))  # no receive
    b.nothing()
    a.send("rdma_write", a.part(0, 3000), wr_id=2, remote_addr=b.mr["addr"], rkey=b.mr["rkey"] ^ 1)
    b.has(71, 0, 4096)
    b.receive(b.part(8000, 3000))
    a.send("send", a.part(0, 3000), wr_id=3)
    b.received(byte_len=3000)
    b.has(70, 8000, 3000)
    a.send("rdma_write", a.part(0, 3000), wr_id=4, **b.at())
    b.receive()
    a.send("rdma_write_with_imm", a.part(0, 10), wr_id=5, imm=5, **b.at(5000))
    b.received(opcode="recv_rdma_with_imm", imm=5)
    b.has(70, 0, 3000)


@row
def datagrams(a, b):
    """UD: Q_Key and receive, or nothing; 40 bytes in front of the message."""
    key = 0x1234567
    for e in (a, b):
        e.open("ud")
        e.ready(e, qkey=key)
    ah = a.s.create_ah(pd=a.pd, ah_attr={"dgid": b.gid})["ah"]
    there = {"ah": ah, "remote_qpn": b.qpn, "remote_qkey": key}
    a.fill(80, 0, 1000)
    a.send("send", a.part(0, 1000), **there)  # no receive
    b.nothing()
    b.receive(b.part(0, 1040))
    a.send("send", a.part(0, 1000), wr_id=2, **dict(there, remote_qkey=key + 1))
    b.nothing()
    a.send("send_with_imm", a.part(0, 1000), wr_id=3, imm=3, **there)
    b.received(byte_len=1040, imm=3, src_qp=a.qpn)
    b.has(80, 40, 1000)


def run(name, a, b):
    """What is wrong with one row: a list of lines."""
    a.wrong, b.wrong = [], []
    try:
        ROWS[name](a, b)
    except rnic_script.refused as e:
        a.wrong.append("refused: %s %s" % (e.errno, e))
    finally:
        a.close()
        b.close()
    return a.wrong + b.wrong
