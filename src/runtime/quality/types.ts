import type { QualityParts } from '../../memory/schemas/audit.ts';

/** Compares an answer of a model with further answers; a failure is a missing part. */
export type Opinion = (modelId: string, text: string) => Promise<Pick<QualityParts, 'consistency' | 'peer'>>;
