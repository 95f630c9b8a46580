import { jsonCost } from '../automata/dfa-measures.ts';

/** Bytes of a text between the quotes of a JSON string. */
export function jsonTextBytes(text: string): number {
  let bytes = 0;
  for (const character of text) bytes += jsonCost(character.codePointAt(0)!);
  return bytes;
}
