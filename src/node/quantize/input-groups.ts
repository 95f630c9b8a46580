import type { ObservedInput } from '../../kernels/observed-pack.ts';

/** Matrices with the same inputs: one factor rounds all of them. */
export interface InputGroup {
  readonly names: readonly string[];
  readonly numCols: number;
  /** Of a stack of experts: the number of matrices, and which one. */
  readonly numMatrices: number;
  readonly matrix: number;
}

/** Finds matrices with the same inputs in a run. */
export interface InputGroups {
  see(input: ObservedInput): void;
  /** In the order of the run; a tensor whose parts have inputs of different sizes is in none. */
  list(): readonly InputGroup[];
}

interface Seen {
  /** The matrices of each product that the tensor is in. */
  readonly products: Set<string>;
  readonly shapes: Set<string>;
  readonly numCols: number;
  readonly numMatrices: number;
}

/** The names of the matrices of a product. */
export const namesOf = ({ weights }: ObservedInput): string[] => [...new Set(weights.map(({ name }) => name))];

/** No groups yet. */
export function createInputGroups(): InputGroups {
  const tensors = new Map<string, Seen>();
  return {
    see(input) {
      const { numCols, numMatrices } = input;
      const names = namesOf(input);
      for (const name of names) {
        if (!tensors.has(name)) {
          tensors.set(name, { products: new Set(), shapes: new Set(), numCols, numMatrices });
        }
        const seen = tensors.get(name)!;
        seen.products.add(names.join('\n'));
        seen.shapes.add(`${numCols} ${numMatrices}`);
      }
    },
    list() {
      const groups = new Map<string, Seen & { readonly names: string[] }>();
      for (const [name, seen] of tensors) {
        if (seen.shapes.size > 1) continue;
        // Tensors that appear in the same products have the same inputs.
        const key = [...seen.products].toSorted().join('\n\n');
        const group = groups.get(key);
        if (group === undefined) groups.set(key, { ...seen, names: [name] });
        else group.names.push(name);
      }
      return [...groups.values()].flatMap(({ names, numCols, numMatrices }) =>
        Array.from({ length: numMatrices }, (_, matrix) => ({ names, numCols, numMatrices, matrix })),
      );
    },
  };
}
