// SPDX-License-Identifier: Apache-2.0
// Invariant CRC of one packet after the other, a beat of BeatBytes a cycle: the width of the datapath that it is in.
//
// Stream contract (rtl/README.md): valid does not wait for ready; the payload is stable while valid && !ready; valid
// is low during reset. The packet starts at its L3 header and ends before its ICRC; the fields that may change on the
// way are masked here. The result of a packet is valid three cycles after its last beat was taken:
//
//   cycle      n            n+1           n+2              n+3
//   last beat  taken        masked_q      crc_q, done_q    result_q
//
// While a result waits, the next packet is taken up to and including its last beat; what follows stalls. All outputs
// come from registers.

module icrc_engine
  import icrc_pkg::*;
#(
  // Bytes of a beat: 16, 32 or 64.
  parameter int unsigned BeatBytes = 16,
  // Byte of the BTH that counts as ones.
  parameter int unsigned BthReserved = BthReserved8a,
  localparam int unsigned BeatBits = 8 * BeatBytes,
  localparam int unsigned KeepBits = $clog2(BeatBytes) + 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Packet
  input  logic                in_valid_i,
  output logic                in_ready_o,
  input  logic [BeatBits-1:0] in_data_i,   // byte 0 in [7:0]
  input  logic [KeepBits-1:0] in_keep_i,   // valid bytes: BeatBytes, on the last beat 1..BeatBytes
  input  logic                in_first_i,
  input  logic                in_last_i,
  input  logic [1:0]          in_encap_i,  // encap_e, read on every beat

  // ICRC, to be stored little-endian
  output logic                result_valid_o,
  input  logic                result_ready_i,
  output logic [31:0]         result_crc_o
);

  // Beats that have variant fields; the beat counter stays at the next one.
  localparam int unsigned MaskedBeats = MaskedBytes / BeatBytes;
  localparam int unsigned IndexBits   = $clog2(MaskedBeats + 1);

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

  localparam crc_rows_t CrcRows = crc_rows();

  // The register after the first `keep` (1..BeatBytes) bytes of `data`; byte 0 is data[7:0]. The bytes move to the end
  // of the beat, with zeros in front: zeros do not change a register of zeros, so one matrix does for every length.
  // With less than four bytes a part of the old register is shifted, not divided.
  function automatic logic [31:0] crc32_beat(logic [31:0] crc, logic [BeatBits-1:0] data,
                                             logic [KeepBits-1:0] keep);
    logic [BeatBits-1:0] aligned;
    logic [31:0]         next;
    logic [KeepBits+1:0] shift;
    shift   = {(KeepBits - 1)'(0) - keep[KeepBits-2:0], 3'd0};  // 8 * (BeatBytes - keep)
    aligned = (data ^ {{(BeatBits - 32) {1'b0}}, crc}) << shift;
    next    = (keep < KeepBits'(4)) ? crc >> {keep[1:0], 3'd0} : 32'd0;
    for (int unsigned row = 0; row < 32; row++) begin
      next[row] = next[row] ^ (^(aligned & CrcRows[row]));
    end
    return next;
  endfunction

  // Stage 1: the masked beat
  logic                masked_valid_d, masked_valid_q;
  logic [BeatBits-1:0] masked_data_d, masked_data_q;
  logic [KeepBits-1:0] masked_keep_d, masked_keep_q;
  logic                masked_first_d, masked_first_q;
  logic                masked_last_d, masked_last_q;
  logic [IndexBits-1:0] index_d, index_q; // beat of the packet, stays at MaskedBeats
  // Stage 2: the CRC register
  logic [31:0]         crc_d, crc_q;
  logic                done_d, done_q;
  // Stage 3: the result
  logic                result_valid_d, result_valid_q;
  logic [31:0]         result_d, result_q;

  logic                     take, advance, finish;
  logic [IndexBits-1:0]     index;
  logic [8*MaskedBytes-1:0] variant;
  logic [BeatBits-1:0]      ones;  // of this beat

  assign finish     = done_q && !result_valid_q;
  assign advance    = !done_q || !result_valid_q;
  assign in_ready_o = !masked_valid_q || advance;
  assign take       = in_valid_i && in_ready_o;
  assign index      = in_first_i ? '0 : index_q;
  assign variant    = variant_fields(encap_e'(in_encap_i), BthReserved);

  always_comb begin
    ones = '0;
    for (int unsigned beat = 0; beat < MaskedBeats; beat++) begin
      if (index == IndexBits'(beat)) ones = variant[BeatBits*beat+:BeatBits];
    end
  end

  always_comb begin
    masked_valid_d = masked_valid_q && !advance;
    masked_data_d  = masked_data_q;
    masked_keep_d  = masked_keep_q;
    masked_first_d = masked_first_q;
    masked_last_d  = masked_last_q;
    index_d        = index_q;
    if (take) begin
      masked_valid_d = 1'b1;
      masked_data_d  = in_data_i | ones;
      masked_keep_d  = in_keep_i;
      masked_first_d = in_first_i;
      masked_last_d  = in_last_i;
      index_d        = index == IndexBits'(MaskedBeats) ? index : index + IndexBits'(1);
    end
  end

  always_comb begin
    crc_d  = crc_q;
    done_d = done_q && !finish;
    if (masked_valid_q && advance) begin
      crc_d  = crc32_beat(masked_first_q ? Seed : crc_q, masked_data_q, masked_keep_q);
      done_d = masked_last_q;
    end
  end

  always_comb begin
    result_d       = finish ? ~crc_q : result_q;
    result_valid_d = finish || (result_valid_q && !result_ready_i);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      masked_valid_q <= 1'b0;
      masked_data_q  <= '0;
      masked_keep_q  <= '0;
      masked_first_q <= 1'b0;
      masked_last_q  <= 1'b0;
      index_q        <= '0;
      crc_q          <= Seed;
      done_q         <= 1'b0;
      result_valid_q <= 1'b0;
      result_q       <= '0;
    end else begin
      masked_valid_q <= masked_valid_d;
      masked_data_q  <= masked_data_d;
      masked_keep_q  <= masked_keep_d;
      masked_first_q <= masked_first_d;
      masked_last_q  <= masked_last_d;
      index_q        <= index_d;
      crc_q          <= crc_d;
      done_q         <= done_d;
      result_valid_q <= result_valid_d;
      result_q       <= result_d;
    end
  end

  assign result_valid_o = result_valid_q;
  assign result_crc_o   = result_q;

endmodule
