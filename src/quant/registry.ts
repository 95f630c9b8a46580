import type { TensorTypeName } from '../core/tensor-type.ts';
import { BF16 } from './bf16.ts';
import { F16 } from './f16.ts';
import { F32 } from './f32.ts';
import type { QuantFormat } from './format.ts';
import { IQ1_M } from './iq1-m.ts';
import { IQ1_S } from './iq1-s.ts';
import { IQ2_S } from './iq2-s.ts';
import { IQ2_XS } from './iq2-xs.ts';
import { IQ2_XXS } from './iq2-xxs.ts';
import { IQ3_S } from './iq3-s.ts';
import { IQ3_XXS } from './iq3-xxs.ts';
import { IQ4_NL } from './iq4-nl.ts';
import { IQ4_XS } from './iq4-xs.ts';
import { MXFP4 } from './mxfp4.ts';
import { NVFP4 } from './nvfp4.ts';
import { Q1_0 } from './q1-0.ts';
import { Q2_0 } from './q2-0.ts';
import { Q2_K } from './q2-k.ts';
import { Q3_K } from './q3-k.ts';
import { Q4_0 } from './q4-0.ts';
import { Q4_1 } from './q4-1.ts';
import { Q4_K } from './q4-k.ts';
import { Q5_0 } from './q5-0.ts';
import { Q5_1 } from './q5-1.ts';
import { Q5_K } from './q5-k.ts';
import { Q6_K } from './q6-k.ts';
import { Q8_0 } from './q8-0.ts';
import { Q8_K } from './q8-k.ts';
import { TQ1_0 } from './tq1-0.ts';
import { TQ2_0 } from './tq2-0.ts';

/** All supported tensor element types, by name. */
export const quantFormats: Readonly<Record<TensorTypeName, QuantFormat>> = Object.freeze({
  F32,
  F16,
  BF16,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  Q8_K,
  IQ1_S,
  IQ1_M,
  IQ2_XXS,
  IQ2_XS,
  IQ2_S,
  IQ3_XXS,
  IQ3_S,
  IQ4_NL,
  IQ4_XS,
  TQ1_0,
  TQ2_0,
  Q1_0,
  Q2_0,
  MXFP4,
  NVFP4,
});

const formatsById = new Map(Object.values(quantFormats).map((format) => [format.ggufId, format]));

/** The format with this GGUF type number, or null if unsupported. */
export function formatByGgufId(id: number): QuantFormat | null {
  return formatsById.get(id) ?? null;
}
