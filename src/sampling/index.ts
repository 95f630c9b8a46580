export { createSampler } from './sampler.ts';
export { SAMPLER_STEPS } from './chain.ts';
export { resolveGenerateParams } from './generate-params.ts';
export type { GenerateParams, ResolvedGenerateParams } from './generate-params.ts';
export { createStopMatcher } from './stop-matcher.ts';
export type { StopMatcher, StopResult } from './stop-matcher.ts';
export type { SamplerStep } from './step.ts';
export type { SampledToken, Sampler, SamplingParams, TokenLogprob } from './types.ts';
