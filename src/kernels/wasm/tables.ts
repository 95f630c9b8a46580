import { IQ2_XXS_GRID } from '../../quant/iq2-xxs-grid.ts';
import { IQ4_VALUES } from '../../quant/iq4-codebook.ts';

// Addresses must match assembly/tables.ts.
const IQ2_GRID_AT = 57344;
const IQ4_VALUES_AT = 59392;
const IQ2_VALUES_AT = 59408;
const IQ4_INDEX_AT = 59424;
const IQ2_INDEX_AT = 59680;

/** Writes the format tables at the addresses that kernels expect. */
export function writeTables(buffer: ArrayBufferLike): void {
  const magnitudes = [...new Set(IQ2_XXS_GRID)];
  const iq2Values = [...magnitudes, ...magnitudes.map((value) => -value)];
  new Int8Array(buffer, IQ2_GRID_AT, IQ2_XXS_GRID.length).set(IQ2_XXS_GRID);
  writeCodebook(buffer, IQ4_VALUES, IQ4_VALUES_AT, IQ4_INDEX_AT);
  writeCodebook(buffer, iq2Values, IQ2_VALUES_AT, IQ2_INDEX_AT);
}

function writeCodebook(buffer: ArrayBufferLike, values: ArrayLike<number>, valuesAt: number, indexAt: number): void {
  new Int8Array(buffer, valuesAt, 16).set(values);
  const index = new Uint8Array(buffer, indexAt, 256);
  for (let i = 0; i < values.length; i++) index[values[i]! & 255] = i;
}
