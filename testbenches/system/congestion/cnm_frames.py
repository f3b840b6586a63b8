# SPDX-License-Identifier: Apache-2.0
"""Congestion notification messages as layers of scapy, from the standard's layout (IEEE 802.1Q clauses 33.2 to 33.4):
tshark 4.0 and scapy 2.5 know neither. What the tests of captures read CNMs with; run as a program it prints those of
which testbenches/unit/wire/cnm_test.cpp has the bytes.
"""
from scapy.fields import (BitField, FieldLenField, MACField, ShortField, SignedShortField, StrLenField, XLongField,
                          XShortEnumField)
from scapy.layers.l2 import Dot1Q, Ether, ETHER_TYPES
from scapy.packet import Packet, bind_layers

CNM_TYPE, CN_TAG_TYPE = 0x22e7, 0x22e9


class CnTag(Packet):
    name = "CN-TAG"
    fields_desc = [ShortField("flow", 0), XShortEnumField("type", CNM_TYPE, ETHER_TYPES)]


class Cnm(Packet):
    name = "CNM"
    fields_desc = [BitField("version", 0, 4), BitField("reserved", 0, 6), BitField("feedback", 0, 6),
                   XLongField("cpid", 0), SignedShortField("q_offset", 0), SignedShortField("q_delta", 0),
                   BitField("priority", 0, 3), BitField("reserved2", 0, 13), MACField("sampled_dmac", None),
                   FieldLenField("length", None, length_of="msdu", fmt="H"),
                   StrLenField("msdu", b"", length_from=lambda p: p.length)]


bind_layers(Ether, Cnm, type=CNM_TYPE)
bind_layers(Dot1Q, Cnm, type=CNM_TYPE)
bind_layers(Ether, CnTag, type=CN_TAG_TYPE)
bind_layers(Dot1Q, CnTag, type=CN_TAG_TYPE)
bind_layers(CnTag, Cnm, type=CNM_TYPE)


def examples():
    cnm = Cnm(feedback=63, cpid=0x0200000080010603, q_offset=-1016, q_delta=312, priority=3,
              sampled_dmac="02:00:00:00:00:09", msdu=bytes(range(0x40, 0x80)))
    ether = {"dst": "02:00:00:00:00:01", "src": "02:00:00:00:80:01"}
    yield Ether(type=CNM_TYPE, **ether) / cnm
    yield Ether(**ether) / Dot1Q(prio=6, vlan=2, type=CNM_TYPE) / Cnm(feedback=1, q_offset=5, q_delta=-6, priority=7,
                                                                      sampled_dmac="02:00:00:00:00:09", msdu=b"\x89\x15")
    yield Ether(**ether) / Dot1Q(prio=6, vlan=2, type=CN_TAG_TYPE) / CnTag(flow=0x1234) / cnm


if __name__ == "__main__":
    for frame in examples():
        print(bytes(frame).hex())
