// SPDX-License-Identifier: Apache-2.0
// What the invariant CRC is made of, whatever the width of a datapath.

package icrc_pkg;

  // IEEE 802.3 CRC-32, 0x04C11DB7 in reflected bit order: bit 0 of a byte goes first, the register shifts right.
  parameter logic [31:0] Polynomial = 32'hEDB88320;
  // The register after the eight bytes of ones that stand for a local route header (IBA volume 1, 7.8.1; annex A17).
  parameter logic [31:0] Seed = 32'hDEBB20E3;

  // Position of BTH byte 4 (FECN, BECN, reserved bits) behind the start of the BTH.
  parameter int unsigned BthReserved8a = 4;

  typedef enum logic [1:0] {
    EncapRoceV1     = 2'd0,
    EncapRoceV2Ipv4 = 2'd1,
    EncapRoceV2Ipv6 = 2'd2
  } encap_e;

  // The variant fields end before this byte.
  parameter int unsigned MaskedBytes = 64;

  // Bits that count as ones, by encapsulation (adapter data plane C.4). Bytes are counted from the L3 header: GRH or
  // IPv6 40, IPv4 20, UDP 8 bytes.
  function automatic logic [8*MaskedBytes-1:0] variant_fields(encap_e encap, int unsigned bth_reserved);
    logic [8*MaskedBytes-1:0] ones;
    ones = '0;
    unique case (encap)
      EncapRoceV2Ipv4: begin
        ones[8*1+:8]                     = '1;  // type of service
        ones[8*8+:8]                     = '1;  // time to live
        ones[8*10+:16]                   = '1;  // header checksum
        ones[8*(20+6)+:16]               = '1;  // UDP checksum
        ones[8*(20+8+bth_reserved)+:8]   = '1;
      end
      EncapRoceV2Ipv6: begin
        ones[8*0+:4]                     = '1;  // traffic class, flow label
        ones[8*1+:24]                    = '1;
        ones[8*7+:8]                     = '1;  // hop limit
        ones[8*(40+6)+:16]               = '1;  // UDP checksum
        ones[8*(40+8+bth_reserved)+:8]   = '1;
      end
      default: begin  // RoCE v1: GRH
        ones[8*0+:4]                     = '1;
        ones[8*1+:24]                    = '1;
        ones[8*7+:8]                     = '1;
        ones[8*(40+bth_reserved)+:8]     = '1;
      end
    endcase
    return ones;
  endfunction

endpackage
