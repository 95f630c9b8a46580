import type { TensorTypeName } from '../core/tensor-type.ts';
import { fillBlocks } from './any-blocks.ts';
import { alignArena, type KernelPackFactory } from './contract.ts';

/** A matrix of a model. */
export interface SpeedShape {
  readonly type: TensorTypeName;
  readonly numRows: number;
  readonly numCols: number;
}

/** Milliseconds of the products of a shape with one token and with a piece of a prompt. */
export interface KernelSpeed {
  readonly decodeMs: number;
  readonly promptMs: number;
}

const PROMPT_TOKENS = 64;
/** Rows beyond that change the time of a product, not the order of packs. */
const MAX_ROWS = 4096;
const MAX_COLS = 4096;

/** The largest matrix of each type, cut to a size that is quick to measure. */
export function chooseShapes(matrices: readonly SpeedShape[]): SpeedShape[] {
  const largest = new Map<TensorTypeName, SpeedShape>();
  for (const { type, numRows, numCols } of matrices) {
    const shape = { type, numRows: Math.min(numRows, MAX_ROWS), numCols: numCols <= MAX_COLS ? numCols : MAX_COLS };
    const known = largest.get(type);
    if (known === undefined || known.numRows * known.numCols < shape.numRows * shape.numCols) largest.set(type, shape);
  }
  return [...largest.values()].sort((a, b) => (a.type < b.type ? -1 : 1));
}

export const describeShape = (shapes: readonly SpeedShape[]): string =>
  shapes.map(({ type, numRows, numCols }) => `${type} ${numRows}x${numCols}`).join(', ');

/** Measures products with the given matrices, for about `limitMs` each; the best of the runs counts. */
export async function measureKernels(
  factory: KernelPackFactory,
  shapes: readonly SpeedShape[],
  { numThreads, now, limitMs = 60 }: { numThreads: number; now: () => number; limitMs?: number },
): Promise<KernelSpeed> {
  const maxCols = Math.max(...shapes.map(({ numCols }) => numCols));
  const maxRows = Math.max(...shapes.map(({ numRows }) => numRows));
  const matrixBytes = shapes.reduce(
    (sum, { type, numRows, numCols }) => sum + alignArena(factory.matrixBytes(type, numRows, numCols)),
    0,
  );
  const arenaBytes = matrixBytes + alignArena(4 * PROMPT_TOKENS * maxCols) + alignArena(4 * PROMPT_TOKENS * maxRows);
  const pack = await factory.create({ arenaBytes, numThreads, maxTokens: PROMPT_TOKENS, maxCols });
  try {
    const weights = shapes.map(({ type, numRows, numCols }) =>
      pack.loadMatrix({ name: 'speed', type, numRows, numCols, readInto: fillBlocks }),
    );
    const x = pack.arena.allocate(4 * PROMPT_TOKENS * maxCols, 'speed');
    const out = pack.arena.allocate(4 * PROMPT_TOKENS * maxRows, 'speed');
    pack.arena.f32(x, PROMPT_TOKENS * maxCols).forEach((_, i, all) => (all[i] = Math.sin(i)));
    const run = async (numTokens: number): Promise<number> => {
      let best = Infinity;
      const endMs = now() + limitMs;
      do {
        const startMs = now();
        for (const weight of weights) {
          pack.matmul({ x, numTokens, outputs: [{ weight, out, bias: null, accumulate: false }] });
        }
        await pack.sync();
        best = Math.min(best, now() - startMs);
      } while (now() < endMs);
      return best;
    };
    await run(1); // code that runs for the first time is slow
    return { decodeMs: await run(1), promptMs: await run(PROMPT_TOKENS) };
  } finally {
    await pack.dispose();
  }
}

/** Milliseconds by which packs are compared: the geometric mean, so that neither kind of work decides alone. */
export const rateSpeed = ({ decodeMs, promptMs }: KernelSpeed): number => Math.sqrt(decodeMs * promptMs);
