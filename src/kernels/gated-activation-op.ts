import type { Offset } from './arena-alignment.ts';

/** Arguments of `gatedActivation`. */
export interface GatedActivationOp {
  gate: Offset;
  up: Offset;
  out: Offset;
  count: number;
  /**
   * 'gelu' is the tanh approximation of Gemma. Between -10 and 10 its argument and result are rounded to f16, like
   * llama.cpp's table: models are quantized and evaluated with that, and logits differ in the fourth digit without it.
   * 'clamped-swiglu' is gpt-oss's: g / (1 + exp(-1.702 g)) * (u + 1), with g at most 7 and u between -7 and 7.
   */
  activation: 'silu' | 'gelu' | 'clamped-swiglu';
}
