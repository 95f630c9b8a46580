import { END_BAN } from './end-ban.ts';
import { LOGIT_BIAS } from './logit-bias.ts';
import { MIN_P } from './min-p.ts';
import { PENALTIES } from './penalties.ts';
import type { SamplerStep } from './step.ts';
import { TOP_K } from './top-k.ts';
import { TOP_P } from './top-p.ts';
import type { SamplingParams } from './types.ts';
import { TYPICAL_P } from './typical-p.ts';

/** llama.cpp's order, and the ban after all that changes logits. Temperature applies later, in the draw: truncation uses the model's own distribution. */
export const SAMPLER_STEPS: readonly SamplerStep[] = [LOGIT_BIAS, PENALTIES, END_BAN, TOP_K, TYPICAL_P, TOP_P, MIN_P];

/** The steps that have an effect with these parameters. */
export function createChain(params: SamplingParams): readonly SamplerStep[] {
  return SAMPLER_STEPS.filter((step) => step.isActive(params) && (step.kind === 'shape' || params.temperature > 0));
}
