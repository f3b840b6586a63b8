// SPDX-License-Identifier: Apache-2.0
// The ICRC engine with one bug of choice, to see that the lockstep bench finds it.

module icrc_planted
  import icrc_pkg::*;
#(
  parameter int unsigned BeatBytes = 16,
  localparam int unsigned BeatBits = 8 * BeatBytes,
  localparam int unsigned KeepBits = $clog2(BeatBytes) + 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic [1:0]          bug_i,  // 0 none, 1 wrong byte masked, 2 wrong CRC for 13 valid bytes, 3 ready too late

  input  logic                in_valid_i,
  output logic                in_ready_o,
  input  logic [BeatBits-1:0] in_data_i,
  input  logic [KeepBits-1:0] in_keep_i,
  input  logic                in_first_i,
  input  logic                in_last_i,
  input  logic [1:0]          in_encap_i,

  output logic                result_valid_o,
  input  logic                result_ready_i,
  output logic [31:0]         result_crc_o
);

  logic                wrong_mask, hold;
  logic [BeatBits-1:0] data;
  logic                plain_ready, plain_result_valid, mask_ready, mask_result_valid;
  logic [31:0]         plain_crc, mask_crc;

  assign wrong_mask = bug_i == 2'd1;
  assign hold       = bug_i == 2'd3 && in_last_i && plain_result_valid;
  assign data       = bug_i == 2'd2 && in_keep_i == KeepBits'(13) ? in_data_i ^ (BeatBits'(1) << 96) : in_data_i;

  icrc_engine #(
    .BeatBytes(BeatBytes)
  ) u_plain (
    .clk_i         (clk_i),
    .rst_ni        (rst_ni),
    .in_valid_i    (in_valid_i && !wrong_mask && !hold),
    .in_ready_o    (plain_ready),
    .in_data_i     (data),
    .in_keep_i     (in_keep_i),
    .in_first_i    (in_first_i),
    .in_last_i     (in_last_i),
    .in_encap_i    (in_encap_i),
    .result_valid_o(plain_result_valid),
    .result_ready_i(result_ready_i),
    .result_crc_o  (plain_crc)
  );

  icrc_engine #(
    .BeatBytes(BeatBytes),
    .BthReserved(BthReserved8a + 1)
  ) u_wrong_mask (
    .clk_i         (clk_i),
    .rst_ni        (rst_ni),
    .in_valid_i    (in_valid_i && wrong_mask),
    .in_ready_o    (mask_ready),
    .in_data_i     (in_data_i),
    .in_keep_i     (in_keep_i),
    .in_first_i    (in_first_i),
    .in_last_i     (in_last_i),
    .in_encap_i    (in_encap_i),
    .result_valid_o(mask_result_valid),
    .result_ready_i(result_ready_i),
    .result_crc_o  (mask_crc)
  );

  assign in_ready_o     = wrong_mask ? mask_ready : plain_ready && !hold;
  assign result_valid_o = wrong_mask ? mask_result_valid : plain_result_valid;
  assign result_crc_o   = wrong_mask ? mask_crc : plain_crc;

endmodule
