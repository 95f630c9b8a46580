// Sentence embeddings of a suite's texts: computed once, in minutes, and kept by the hash of model and texts.
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { importBuilt } from '../dist.ts';

const { openModelEmbedder } = await importBuilt<typeof import('../../../src/node/memory/model-embedder.ts')>('node/memory/model-embedder'); // prettier-ignore
const { findEncoder } = await importBuilt<typeof import('../../../src/node/memory/find-encoder.ts')>('node/memory/find-encoder'); // prettier-ignore

/** The question is at the end of a long text, and embedding more would cost more than the decision is worth. */
const MAX_CHARACTERS = 600;
/** Texts at once; the loss of an interruption. */
const AT_ONCE = 64;
const TELL_EVERY_MS = 10_000;

const cacheFolder = (): string => join(process.cwd(), '.cache/bench');

/** The file of the memory's sentence encoder; null, with the reason logged, if unavailable. */
export async function findMiniLm(log: (line: string) => void): Promise<string | null> {
  return findEncoder().catch((error: unknown) => {
    log(`no sentence encoder: ${error instanceof Error ? error.message : String(error)}`);
    return null;
  });
}

/** Unit vectors of all texts by the model of a file; resumes an interrupted run. */
export async function modelVectors(
  path: string,
  whole: readonly string[],
  log: (line: string) => void,
): Promise<Float32Array[]> {
  const texts = whole.map((text) => text.slice(-MAX_CHARACTERS));
  const model = createHash('sha256').update(readFileSync(path)).digest('hex');
  const key = createHash('sha256')
    .update(JSON.stringify([model, texts]))
    .digest('hex');
  mkdirSync(cacheFolder(), { recursive: true });
  const file = join(cacheFolder(), `vectors-${key.slice(0, 24)}.f32`);
  const embedder = openModelEmbedder(path);
  const rowBytes = embedder.dim * 4;
  if (!existsSync(file)) writeFileSync(file, '');
  let numDone = Math.floor(statSync(file).size / rowBytes);
  // A truncated row would shift all later ones.
  if (statSync(file).size !== numDone * rowBytes) writeFileSync(file, readFileSync(file).subarray(0, numDone * rowBytes)); // prettier-ignore
  if (numDone < texts.length) log(`vectors of ${texts.length} texts, once: ${numDone} done …`);
  const [from, began] = [numDone, performance.now()];
  let lastReport = began;
  for (; numDone < texts.length; numDone = Math.min(texts.length, numDone + AT_ONCE)) {
    if (performance.now() - lastReport > TELL_EVERY_MS) {
      lastReport = performance.now();
      const left = (((lastReport - began) / (numDone - from)) * (texts.length - numDone)) / 1000;
      log(`vectors: ${numDone} of ${texts.length}, about ${left.toFixed(0)} s left …`);
    }
    const rows = await Promise.all(texts.slice(numDone, numDone + AT_ONCE).map((text) => embedder.embed(text)));
    appendFileSync(file, Buffer.concat(rows.map(bytesOf)));
  }
  await embedder.close();
  const bytes = readFileSync(file);
  // Two concurrent runs: rows would belong to other texts.
  if (bytes.length !== texts.length * rowBytes)
    throw new Error(`${file} has ${bytes.length} bytes instead of ${texts.length * rowBytes}: remove it`);
  const all = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  return texts.map((_, i) => all.slice(i * embedder.dim, (i + 1) * embedder.dim));
}

const bytesOf = (row: Float32Array): Buffer => Buffer.from(row.buffer, row.byteOffset, row.byteLength);
