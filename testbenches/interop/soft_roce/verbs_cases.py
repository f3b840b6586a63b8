# SPDX-License-Identifier: Apache-2.0
"""Verbs by command on both sides: `--app script` and verbs_peer in the guest do the rows of the conformance table, each as
requester and as responder."""
import ipaddress
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../serve/script"))
import conformance  # noqa: E402
import rnic_script  # noqa: E402
from bench import GID4, GUEST4, MODEL4, PORT  # noqa: E402

# What Soft-RoCE does otherwise than the table says: row, who asks, a part of the line that says so, and why. A deviation
# that does not show any more fails the case too. Sources: drivers/infiniband/sw/rxe of Linux 6.1, libibverbs 44.
NO_LENGTH_ERROR = "copy_data(): more than is left of a receive, or no such key, is EINVAL, which send_data_in() takes for " \
    "a malformed request (ENOSPC alone is a length error)"
DEVIATIONS = [
    ("receive_too_short", "model", "status of request 1 is rem_op_err", NO_LENGTH_ERROR),
    ("receive_too_short", "model", "status of receive 100 is loc_qp_op_err", NO_LENGTH_ERROR),
    ("receive_into_a_bad_local_key", "model", "status of receive 100 is loc_qp_op_err", NO_LENGTH_ERROR),
    ("send_from_a_bad_local_key", "guest", "status of request 1 is loc_qp_op_err",
     "rxe_requester(): of finish_packet()'s errors only EFAULT, a range, is a protection error; no such key is EINVAL"),
    ("atomic_across_its_alignment", "guest", "refused: EINVAL post_send",
     "validate_send_wr() refuses to post it; the peer's answer is seen when the model asks"),
    ("invalidated_window", "model", "invalidated_rkey is None",
     "do_complete() gives the kernel's IB_WC_WITH_INVALIDATE, bit 2, which libibverbs calls IBV_WC_IP_CSUM_OK"),
]


class line_peer(rnic_script.script):
    """The commands of a script as lines of verbs_peer."""

    def __init__(self, port):
        s = socket.create_connection(("127.0.0.1", port), 10)
        s.settimeout(self.seconds)
        super().__init__(s.makefile("rb"), s.makefile("wb"), s.close)

    def call(self, do, **fields):
        if "requests" in fields:
            requests = fields.pop("requests")
            for r in requests:
                answer = self.call(do, **dict(fields, **r))
            return answer
        self.writer.write((do + "".join(" " + w for w in words(fields)) + "\n").encode())
        self.writer.flush()
        line = self.reader.readline().decode()
        if line.startswith("error "):
            _, errno, what = line.strip().split(" ", 2)
            raise rnic_script.refused({"error": what, "errno": None if errno == "-" else errno})
        if not line.startswith("ok"):
            raise ConnectionError("the peer ended while it was asked to %s" % do)
        parts = [dict(word(w) for w in part.split()) for part in line[2:].split(" |")]
        return {"completions": parts[1:]} if do == "poll" else parts[0]


def word(text):
    key, _, value = text.partition("=")
    return key, int(value) if value.isdigit() and key != "hex" else value


def words(fields):
    for key, value in fields.items():
        if key == "ah_attr":
            yield from words(value)
        elif key == "dgid":
            gid = ipaddress.ip_address(value)
            gid = ipaddress.ip_address("::ffff:" + value) if gid.version == 4 else gid
            yield "dgid=" + gid.packed.hex()
        elif key == "sge":
            if value:
                yield "sge=" + ",".join(one_sge(s) for s in value)
        elif isinstance(value, list):
            if value:
                yield key + "=" + ",".join(value)
            elif key == "qp_access_flags":
                yield key + "="
        else:
            yield "%s=%s" % (key, value)


def one_sge(s):
    more = [s[k] for k in ("length", "lkey") if k in s]
    if "lkey" in s and "length" not in s:
        raise ValueError("an lkey needs a length here")
    return ":".join(str(x) for x in [s["mr"], s["offset"], *more])


def verdict(b, name, requester, wrong):
    known = [d for d in DEVIATIONS if d[0] == name and d[1] == requester]
    for d in known:
        left = [w for w in wrong if d[2] not in w]
        if len(left) == len(wrong):
            wrong.append("the known deviation %r did not show" % d[2])
        else:
            wrong = left
    b.note("%s, %s asks" % (name.replace("_", " "), requester), not wrong, "".join("  %s\n" % w for w in wrong))
    if not wrong:
        for why in sorted({d[3] for d in known}):
            print("    otherwise, as known: " + why, flush=True)


def rdma_server_of_commands(b, s):
    """rdma_client of the guest meets a server that is made of commands alone."""
    s.cm_listen(port=7471)
    b.guest.start("timeout 60 /usr/bin/rdma_client -s " + MODEL4, "true")
    pd, cq = s.alloc_pd()["pd"], s.create_cq(entries=8)["cq"]
    mr = s.reg_mr(pd=pd, bytes=64, access=["local_write"])
    qp = s.create_qp(type="rc", pd=pd, send_cq=cq)
    s.to_init(qp["qp"])
    s.receive(qp["qp"], [rnic_script.sge(mr, 0, 16)])
    request = s.cm_event(timeout_ms=20000)
    wrong = []
    if request["event"] != "request":
        return b.note("rdma_client and commands", False, str(request))
    s.to_rtr(qp["qp"], "rc", {"gid": request["from"], "qpn": request["qpn"], "psn": 99}, max_dest_rd_atomic=1)
    s.to_rts(qp["qp"], "rc", psn=request["psn"], timeout=b.ack_timeout, max_rd_atomic=1)
    s.cm_accept(connection=request["connection"], qp=qp["qp"], psn=99)
    e = s.cm_event(timeout_ms=20000)
    wrong += [] if e["event"] == "established" else ["confirmation: %s" % e]
    heard = s.one(cq, 20000)
    wrong += [] if heard and heard.get("byte_len") == 16 else ["message: %s" % heard]
    s.send(qp["qp"], "send", [rnic_script.sge(mr, 0, 16)])
    said = s.one(cq, 20000)
    wrong += [] if said and said["status"] == "success" else ["answer: %s" % said]
    e = s.cm_event(timeout_ms=20000)
    wrong += [] if e["event"] == "disconnect_request" else ["end: %s" % e]
    s.cm_disconnect(connection=request["connection"])
    status, text = b.guest.finish_server()
    wrong += [] if status == 0 else ["the guest: %d %s" % (status, text)]
    s.destroy_all()
    b.note("rdma_client and a server of commands", not wrong, "".join("  %s\n" % w for w in wrong))


def verbs(b):
    tool = "/usr/bin/verbs_peer rxe0 %d %d" % (b.guest.gid_index(GID4), PORT)
    b.guest.start_server(tool, PORT)
    path = os.path.join(b.folder, "script")
    model = b.serve("--app", "script", "--script", "unix:" + path)
    guest = conformance.end("guest", line_peer(PORT), GUEST4, b.ack_timeout)
    ours = conformance.end("model", rnic_script.connect("unix:" + path), MODEL4, b.ack_timeout)
    for name in conformance.ROWS:
        for requester, responder in ((ours, guest), (guest, ours)):
            verdict(b, name, requester.name, conformance.run(name, requester, responder))
    guest.s.close()
    status, text = b.guest.finish_server()
    b.note("the guest's side ends", status == 0, text)
    rdma_server_of_commands(b, ours.s)
    ours.s.close()
    status, text = b.end(model)
    b.note("the model's side ends", status == 0, text)
