import { IQ2_XXS_GRID } from '../../quant/iq2-xxs-grid.ts';
import { IQ3_S_GRID } from '../../quant/iq3-s-grid.ts';
import { IQ3_XXS_GRID } from '../../quant/iq3-xxs-grid.ts';
import { FP4_VALUES } from '../../quant/fp4.ts';
import { IQ4_VALUES } from '../../quant/iq4-codebook.ts';

// Addresses must match assembly/tables.ts.
const IQ2_GRID_AT = 57344;
const IQ4_VALUES_AT = 59392;
const IQ2_VALUES_AT = 59408;
const IQ4_INDEX_AT = 59424;
const IQ2_INDEX_AT = 59680;
const FP4_VALUES_AT = 59936;
const IQ3_VALUES_AT = 59952;
const ODD_VALUES_AT = 59968;
const FP4_INDEX_AT = 59984;
const IQ3_INDEX_AT = 60240;
const ODD_INDEX_AT = 60496;

/** Writes the format tables at the addresses that kernels expect. */
export function writeTables(buffer: ArrayBufferLike): void {
  new Int8Array(buffer, IQ2_GRID_AT, IQ2_XXS_GRID.length).set(IQ2_XXS_GRID);
  writeCodebook(buffer, IQ4_VALUES, IQ4_VALUES_AT, IQ4_INDEX_AT);
  writeCodebook(buffer, withNegatives(new Set(IQ2_XXS_GRID)), IQ2_VALUES_AT, IQ2_INDEX_AT);
  writeCodebook(buffer, FP4_VALUES, FP4_VALUES_AT, FP4_INDEX_AT);
  writeCodebook(buffer, withNegatives(new Set(IQ3_XXS_GRID)), IQ3_VALUES_AT, IQ3_INDEX_AT);
  writeCodebook(buffer, withNegatives(new Set(IQ3_S_GRID)), ODD_VALUES_AT, ODD_INDEX_AT);
}

const withNegatives = (magnitudes: Iterable<number>): number[] => {
  const values = [...magnitudes];
  return [...values, ...values.map((value) => -value)];
};

function writeCodebook(buffer: ArrayBufferLike, values: ArrayLike<number>, valuesAt: number, indexAt: number): void {
  new Int8Array(buffer, valuesAt, 16).set(values);
  const index = new Uint8Array(buffer, indexAt, 256);
  for (let i = 0; i < values.length; i++) index[values[i]! & 255] = i;
}
