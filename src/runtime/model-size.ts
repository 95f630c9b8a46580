/** Model size class for routing: below 1, 1 to 3, 3 to 13, above 13 billion parameters. */
export type ModelSize = 'tiny' | 'small' | 'medium' | 'large';

/** The size class; a border belongs to the larger class, except 13 billion, which is `medium`. */
export function modelSizeOf(numParameters: number): ModelSize {
  if (numParameters < 1e9) return 'tiny';
  if (numParameters < 3e9) return 'small';
  return numParameters <= 13e9 ? 'medium' : 'large';
}
