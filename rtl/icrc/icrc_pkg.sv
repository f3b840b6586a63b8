// SPDX-License-Identifier: Apache-2.0
// CRC-32 of 256-bit beats and the fields that the invariant CRC leaves out.

package icrc_pkg;

  parameter int unsigned BeatBytes = 32;  // 128 bits a cycle at 427 MHz are less than 56 Gb/s
  parameter int unsigned BeatBits  = 8 * BeatBytes;

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

  // Rows of the matrix that takes the bits of a full beat to the 32 bits of the register: a result bit is the
  // parity of the beat under its row.
  typedef logic [31:0][BeatBits-1:0] crc_rows_t;

  function automatic crc_rows_t crc_rows();
    crc_rows_t   rows;
    logic [31:0] contribution;
    for (int unsigned b = 0; b < 8; b++) begin
      contribution = 32'd1 << b;
      for (int unsigned byte_index = BeatBytes; byte_index > 0; byte_index--) begin
        for (int unsigned shift = 0; shift < 8; shift++) begin
          contribution = (contribution >> 1) ^ (contribution[0] ? Polynomial : 32'd0);
        end
        for (int unsigned row = 0; row < 32; row++) begin
          rows[row][8*(byte_index-1)+b] = contribution[row];
        end
      end
    end
    return rows;
  endfunction

  parameter crc_rows_t CrcRows = crc_rows();

  // The register after the first `keep` (1..32) bytes of `data`; byte 0 is data[7:0]. The bytes move to the end of the
  // beat, with zeros in front: zeros do not change a register of zeros, so one matrix does for every length. With less
  // than four bytes a part of the old register is shifted, not divided.
  function automatic logic [31:0] crc32_beat(logic [31:0] crc, logic [BeatBits-1:0] data,
                                             logic [5:0] keep);
    logic [BeatBits-1:0] aligned;
    logic [31:0]         next;
    logic [7:0]          shift;
    shift   = {5'd0 - keep[4:0], 3'd0};  // 8 * (32 - keep)
    aligned = (data ^ {{(BeatBits - 32) {1'b0}}, crc}) << shift;
    next    = (keep < 6'd4) ? crc >> {keep[1:0], 3'd0} : 32'd0;
    for (int unsigned row = 0; row < 32; row++) begin
      next[row] = next[row] ^ (^(aligned & CrcRows[row]));
    end
    return next;
  endfunction

  // Bits of beat `index` (0 or 1, anything later is 2) that count as ones, by encapsulation (adapter data plane C.4).
  // Bytes are counted from the L3 header: GRH or IPv6 40, IPv4 20, UDP 8 bytes.
  function automatic logic [BeatBits-1:0] variant_fields(encap_e encap, logic [1:0] index,
                                                         int unsigned bth_reserved);
    logic [8*64-1:0] ones;
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
    return index[1] ? '0 : ones[BeatBits*32'(index[0])+:BeatBits];
  endfunction

endpackage
