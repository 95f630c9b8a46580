import { meanSquares } from '../../gguf/imatrix/imatrix.ts';
import { gptqEncoder, importanceEncoder, type RowEncoder } from '../../gguf/requantize/encode-rows.ts';
import { type ErrorFactor, factorInPlace } from '../../gguf/requantize/gptq/factor.ts';
import { addInputs, createInputProducts, hasInputs, productBytes } from '../../gguf/requantize/gptq/input-products.ts';
import { hasLevels } from '../../gguf/requantize/gptq/round-rows.ts';
import { floatStrips } from '../../gguf/requantize/quantize-source.ts';
import type { RequantizedTensor } from '../../gguf/requantize/requantize.ts';
import { type CalibrationOptions, collectImatrix, runCalibration } from './collect-imatrix.ts';
import { checkNumTokens, describeTensors, type GptqReport } from './gptq-report.ts';
import { createInputGroups, type InputGroup, namesOf } from './input-groups.ts';
import { createRowStore, type RowStore } from './row-store.ts';

/** Memory for the input products of a pass. */
export const PASS_BYTES = 512 * 2 ** 20;

/** A model to round with the inputs of a text. */
export interface GptqJob {
  readonly modelPath: string;
  /** The new file; rows wait in a temporary file beside it. */
  readonly path: string;
  readonly plan: readonly RequantizedTensor[];
  readonly calibration: CalibrationOptions;
  /** Most bytes of input products at a time, such as `PASS_BYTES`; a larger matrix has a pass of its own. */
  readonly passBytes: number;
  /** After each strip of rounded rows. */
  readonly onRows: (entry: RequantizedTensor, numRows: number) => void;
}

/** Rounded tensors, ready to be written. */
export interface GptqRows {
  readonly encode: RowEncoder;
  readonly report: GptqReport;
  /** Removes the temporary file. */
  dispose(): void;
}

/** Rounds all tensors of a plan whose inputs are visible, group by group: memory is that of the model and of one pass. */
export async function roundWithGptq({
  modelPath,
  path,
  plan,
  calibration,
  passBytes,
  onRows,
}: GptqJob): Promise<GptqRows> {
  const inputGroups = createInputGroups();
  const { sums, numTokens } = await collectImatrix(modelPath, calibration, inputGroups.see);
  const weighted = importanceEncoder(new Map([...sums].map(([name, entry]) => [name, meanSquares(entry)])));
  const groups = inputGroups.list();
  const targets = new Map(plan.filter((entry) => isTarget(entry, groups)).map((entry) => [entry.tensor.name, entry]));
  const passes = planPasses(
    groups.filter(({ names }) => names.some((name) => targets.has(name))),
    passBytes,
  );
  checkNumTokens(numTokens, [...targets.values()]);
  const store = createRowStore(path, [...targets.values()]);
  const unused = new Map<string, number>();
  try {
    for (const pass of passes) {
      const factors = await factorPass(modelPath, calibration, pass);
      for (const name of new Set(pass.flatMap(({ names }) => names))) {
        const entry = targets.get(name);
        if (entry === undefined) continue;
        const ofTensor = pass.filter(({ names }) => names.includes(name));
        const numUnused = ofTensor.filter((group) => factors.get(group) === null).length;
        if (numUnused > 0) unused.set(name, (unused.get(name) ?? 0) + numUnused);
        const encoders = new Map(ofTensor.map((group) => [group.matrix, encoderOf(factors.get(group)!, weighted)]));
        storeRows(entry, encoders, store, onRows);
      }
    }
  } catch (error) {
    store.dispose();
    throw error;
  }
  return {
    encode: (rows) => {
      const entry = targets.get(rows.tensor.name);
      if (entry === undefined) return weighted(rows);
      return store.read(entry, rows.firstRow, rows.values.length / rows.tensor.dims[0]!);
    },
    report: { numTokens, numPasses: 1 + passes.length, ...describeTensors(plan, targets, groups, unused) },
    dispose: store.dispose,
  };
}

const encoderOf = (factor: ErrorFactor | null, weighted: RowEncoder): RowEncoder =>
  factor === null ? weighted : gptqEncoder(factor);

/** Whether a tensor can be rounded column by column, and a group of its shape has its inputs. */
function isTarget({ tensor, type }: RequantizedTensor, groups: readonly InputGroup[]): boolean {
  if (type === tensor.type || !hasLevels(type)) return false;
  const group = groups.find(({ names }) => names.includes(tensor.name));
  return group !== undefined && group.numCols === tensor.dims[0] && group.numMatrices === (tensor.dims[2] ?? 1);
}

function planPasses(groups: readonly InputGroup[], passBytes: number): InputGroup[][] {
  const passes: InputGroup[][] = [];
  let numBytes = Infinity;
  for (const group of groups) {
    const size = productBytes(group.numCols);
    if (numBytes + size > passBytes) {
      passes.push([]);
      numBytes = 0;
    }
    passes.at(-1)!.push(group);
    numBytes += size;
  }
  return passes;
}

/** Runs the text once and factors the input products of some groups; null: only zeros, or an expert that few tokens chose. */
async function factorPass(
  modelPath: string,
  calibration: CalibrationOptions,
  pass: readonly InputGroup[],
): Promise<Map<InputGroup, ErrorFactor | null>> {
  const products = new Map(pass.map((group) => [group, createInputProducts(group.numCols)]));
  await runCalibration(modelPath, calibration, (input) => {
    const names = namesOf(input);
    for (const group of pass) {
      if (group.matrix !== input.matrix || !names.includes(group.names[0]!)) continue;
      addInputs(products.get(group)!, input.rows);
    }
  });
  const factors = new Map<InputGroup, ErrorFactor | null>();
  for (const [group, sums] of products) {
    const isUsable = sums.numRows >= sums.numCols && hasInputs(sums);
    factors.set(group, isUsable ? factorInPlace(sums, group.names.join(', ')) : null);
  }
  return factors;
}

/** Encodes the rows of some matrices of a tensor, strip by strip. */
function storeRows(
  entry: RequantizedTensor,
  encoders: ReadonlyMap<number, RowEncoder>,
  store: RowStore,
  onRows: GptqJob['onRows'],
): void {
  const { tensor, type } = entry;
  const [numCols, rowsPerMatrix] = [tensor.dims[0]!, tensor.dims[1]!];
  for (const { values, firstRow } of floatStrips(tensor)) {
    const endRow = firstRow + values.length / numCols;
    for (let row = firstRow; row < endRow;) {
      const matrix = Math.floor(row / rowsPerMatrix);
      const end = Math.min(endRow, (matrix + 1) * rowsPerMatrix);
      const encode = encoders.get(matrix);
      if (encode !== undefined) {
        const part = values.subarray((row - firstRow) * numCols, (end - firstRow) * numCols);
        store.write(entry, row, encode({ tensor, type, values: part, firstRow: row }));
        onRows(entry, end - row);
      }
      row = end;
    }
  }
}
