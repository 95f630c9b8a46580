// npm run compare:checkpoints -- FOLDER: converts the checkpoints of bench/checkpoints/make_checkpoints.py and compares their logits
// with those of Hugging Face's transformers.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importBuilt } from './support/dist.ts';
import { printTable } from './support/report.ts';

const { convertFolder } = await importBuilt<typeof import('../src/node/convert-folder.ts')>('node/convert-folder');
const { openVisionEncoder } = await importBuilt<typeof import('../src/vision/open-encoder.ts')>('vision/open-encoder'); // prettier-ignore
const { loadModel } = await importBuilt<typeof import('../src/models/index.ts')>('models/index');
const { createReferencePackFactory } = await importBuilt<typeof import('../src/kernels/reference/reference-pack.ts')>('kernels/reference/reference-pack'); // prettier-ignore
const { createMemorySource, openGguf } = await importBuilt<typeof import('../src/gguf/index.ts')>('gguf/index');

/** Our GELU by tanh is rounded to half precision, as llama.cpp's is; other models differ by float sums only. */
const LIMIT = 1e-5;
const ROUNDED_LIMIT = 5e-3;
/** Its positions are stretched by whole numbers of rotations, as in llama.cpp; transformers uses fractions. */
const ROUNDED = /gelu|"model_type": "gpt_oss"/;
const LIMITS = {
  maxBatchTokens: 64,
  maxSequences: 1,
  maxLogitRows: 64,
  numPages: 8,
  numStates: 4,
  kvPrecision: 'f32',
} as const;

/** The largest difference, as a share of the largest value. */
function findError(values: Float32Array, expected: Float32Array): number {
  let [worst, peak] = [0, 0];
  for (const [i, value] of expected.entries()) {
    peak = Math.max(peak, Math.abs(value));
    worst = Math.max(worst, Math.abs(value - values[i]!));
  }
  return worst / peak;
}

const readFloats = (path: string): Float32Array => new Float32Array(new Uint8Array(readFileSync(path)).buffer);

/** The rows of an image. */
async function compareVision(folder: string, path: string): Promise<number> {
  convertFolder({ folder, path, type: 'F32', part: 'projector' });
  const gguf = openGguf(createMemorySource(new Uint8Array(readFileSync(path))));
  const encoder = await openVisionEncoder(gguf, createReferencePackFactory(), { numThreads: 1 });
  const rows = await encoder.encode(readFloats(join(folder, 'pixels.f32')));
  await encoder.dispose();
  return findError(rows, readFloats(join(folder, 'features.f32')));
}

/** The logits of all positions. */
async function compare(folder: string, path: string): Promise<number> {
  convertFolder({ folder, path, type: 'F32' });
  const { ids } = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')) as { ids: number[] };
  const expected = readFloats(join(folder, 'logits.f32'));
  const gguf = openGguf(createMemorySource(new Uint8Array(readFileSync(path))));
  const model = await loadModel(gguf, createReferencePackFactory(), { limits: LIMITS });
  const positions = ids.map((_, i) => i);
  const state = model.states === null ? {} : { state: { index: 0, copy: null } };
  const sequence = { firstRow: 0, numRows: ids.length, contextTokens: ids.length, pageIds: [0, 1, 2], ...state };
  const logits = await model.forward({ tokenIds: ids, positions, slots: positions, sequences: [sequence], logitRows: positions }); // prettier-ignore
  await model.dispose();
  return findError(logits, expected);
}

const [root] = process.argv.slice(2);
if (root === undefined) {
  console.error('error: name the folder that make_checkpoints.py has written');
  process.exit(2);
}
const temporary = mkdtempSync(join(tmpdir(), 'ruvllm-checkpoints-'));
const rows: string[][] = [];
let numFailed = 0;
for (const name of readdirSync(root).sort()) {
  const config = readFileSync(join(root, name, 'config.json'), 'utf8');
  const limit = ROUNDED.test(config) ? ROUNDED_LIMIT : LIMIT;
  const run = existsSync(join(root, name, 'pixels.f32')) ? compareVision : compare;
  const error = await run(join(root, name), join(temporary, `${name}.gguf`));
  if (!(error <= limit)) numFailed++;
  rows.push([name, error.toExponential(1), limit.toExponential(0), error <= limit ? 'ok' : 'FAIL']);
}
rmSync(temporary, { recursive: true, force: true });
printTable([['checkpoint', 'error', 'limit', ''], ...rows]);
console.log(JSON.stringify({ compare: 'checkpoints', checkpoints: rows.length, numFailed }));
process.exitCode = numFailed === 0 ? 0 : 1;
