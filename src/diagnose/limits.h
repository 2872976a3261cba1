// Limits that several rules share, each with where it comes from.

#pragma once

namespace tensordiff::limits {

// Unit roundoffs above it are those of narrow types: between float32 (6e-8) and TF32 (5e-4).
inline constexpr double kNarrow = 1e-6;
// exp(−kStandIn) is 0 in every type, whatever is added: such numbers stand for infinity, as in
// masks and as the first maximum of a scan.
inline constexpr double kStandIn = 0x1p60;
// Unit roundoffs that computing a step again may leave: those of an output, of what went into it
// and of what is not dumped between them, each a few.
inline constexpr double kReplayed = 16;
// What A's own form may leave of A's output where it is computed in another type than the run; a
// wrong weight leaves all of it.
inline constexpr double kOwnFit = 0.03;
// A transform counts only if it takes away most of the error.
inline constexpr double kImprovement = 0.3;
// What a part must show of the error of the whole tensor, to tell anything of it.
inline constexpr double kShown = 0.25;
// What is accepted leaves less than a third; what a part of it leaves promises that up to here.
inline constexpr double kPromising = 0.8;
// How near a whole number a factor lies that is one; f16 and bf16 values are rounded, too.
inline constexpr double kWhole = 0.02;
// Of two sums of the same squares, taken in another order, in float64.
inline constexpr double kSumsRounded = 1e-9;
// Noise moves an angle by about itself, and angles of far positions are off by more than rounding:
// less than this, and than so many unit roundoffs, is no turn.
inline constexpr double kTurn = 1e-3, kTurnRoundoffs = 8;
// Of a mean: one clean run in 10^9.
inline constexpr double kSigmas = 6;
// The share of the tokens that are off to one side where all are meant.
inline constexpr double kOneSide = 0.95;
// For searches that keep one of two inner points.
inline constexpr double kGolden = 0.6180339887498949;

}  // namespace tensordiff::limits
