// SPDX-License-Identifier: Apache-2.0
// Invariant CRC of one packet after the other, 32 bytes a cycle.
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
  // Byte of the BTH that counts as ones.
  parameter int unsigned BthReserved = BthReserved8a
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Packet
  input  logic                in_valid_i,
  output logic                in_ready_o,
  input  logic [BeatBits-1:0] in_data_i,   // byte 0 in [7:0]
  input  logic [5:0]          in_keep_i,   // valid bytes: 32, on the last beat 1..32
  input  logic                in_first_i,
  input  logic                in_last_i,
  input  logic [1:0]          in_encap_i,  // encap_e, read on every beat

  // ICRC, to be stored little-endian
  output logic                result_valid_o,
  input  logic                result_ready_i,
  output logic [31:0]         result_crc_o
);

  // Stage 1: the masked beat
  logic                masked_valid_d, masked_valid_q;
  logic [BeatBits-1:0] masked_data_d, masked_data_q;
  logic [5:0]          masked_keep_d, masked_keep_q;
  logic                masked_first_d, masked_first_q;
  logic                masked_last_d, masked_last_q;
  logic [1:0]          index_d, index_q;  // beat of the packet, stays at 2
  // Stage 2: the CRC register
  logic [31:0]         crc_d, crc_q;
  logic                done_d, done_q;
  // Stage 3: the result
  logic                result_valid_d, result_valid_q;
  logic [31:0]         result_d, result_q;

  logic       take, advance, finish;
  logic [1:0] index;

  assign finish     = done_q && !result_valid_q;
  assign advance    = !done_q || !result_valid_q;
  assign in_ready_o = !masked_valid_q || advance;
  assign take       = in_valid_i && in_ready_o;
  assign index      = in_first_i ? 2'd0 : index_q;

  always_comb begin
    masked_valid_d = masked_valid_q && !advance;
    masked_data_d  = masked_data_q;
    masked_keep_d  = masked_keep_q;
    masked_first_d = masked_first_q;
    masked_last_d  = masked_last_q;
    index_d        = index_q;
    if (take) begin
      masked_valid_d = 1'b1;
      masked_data_d  = in_data_i | variant_fields(encap_e'(in_encap_i), index, BthReserved);
      masked_keep_d  = in_keep_i;
      masked_first_d = in_first_i;
      masked_last_d  = in_last_i;
      index_d        = index[1] ? index : index + 2'd1;
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
