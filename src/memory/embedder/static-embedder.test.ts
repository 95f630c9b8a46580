import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../../core/byte-source.ts';
import { createRandom } from '../../core/random.ts';
import { openGguf } from '../../gguf/index.ts';
import { dequantizeRow, rowBytes } from '../../quant/index.ts';
import { createTokenizer } from '../../tokenizers/index.ts';
import { findCommonComponents } from './common-components.ts';
import { createRotation } from './rotation.ts';
import { estimateFrequencies } from './token-frequencies.ts';
import { createStaticEmbedder, type StaticEmbedderContext, type TokenTable } from './static-embedder.ts';

const sha256 = (bytes: Uint8Array): Uint8Array => new Uint8Array(createHash('sha256').update(bytes).digest());

function randomTable(width: number, numRows: number, seed = 3): TokenTable {
  const random = createRandom(seed);
  const data = Float32Array.from({ length: width * numRows }, () => random.next() - 0.4);
  return { width, numRows, readRow: (id, out) => out.set(data.subarray(id * width, (id + 1) * width)) };
}

/** Words of two letters: nothing that has a rank of its own. */
const zipf = estimateFrequencies(
  Array.from({ length: 100 }, (_, i) => `w${i}`),
  100,
);
const byChar = (text: string): number[] => Array.from(text, (char) => char.charCodeAt(0) % 100);
const make = (changes: Partial<StaticEmbedderContext> = {}) =>
  createStaticEmbedder({
    table: randomTable(48, 100),
    encode: byChar,
    modelHash: 'm',
    frequencies: zipf,
    sha256,
    ...changes,
  });
const cosine = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

describe('[EM1] the static embedder', () => {
  test('returns unit vectors of 768 values, with the same bits each time and in each instance', () => {
    const embedder = make();
    const vector = embedder.embed('hello world');
    expect([vector.length, embedder.dim]).toEqual([768, 768]);
    expect(cosine(vector, vector)).toBeCloseTo(1, 6);
    embedder.embed('something else');
    expect([...embedder.embed('hello world')]).toEqual([...vector]);
    expect([...make().embed('hello world')]).toEqual([...vector]);
    // Bits noted once: a change of them must come with a new version in the fingerprint.
    expect(createHash('sha256').update(new Uint8Array(vector.buffer)).digest('hex').slice(0, 16)).toBe(
      '705849c37556f866',
    );
  });
  test('makes no difference between capitals and small letters', () => {
    expect([...make().embed('Hello WORLD')]).toEqual([...make().embed('hello world')]);
    expect([...make().embed('hello world')]).not.toEqual([...make().embed('hello sword')]);
  });
  test('does not depend on the order of tokens, and counts frequent ones for less', () => {
    const embedder = make({
      encode: (text) => Array.from(text, Number),
      options: { smoothing: 0.02, numComponents: 0 },
    });
    expect(cosine(embedder.embed('123'), embedder.embed('321'))).toBeCloseTo(1, 5);
    // Token 0 is the most frequent by Zipf, 9 the rarest of these.
    expect(cosine(embedder.embed('09'), embedder.embed('9'))).toBeGreaterThan(
      cosine(embedder.embed('09'), embedder.embed('0')),
    );
    const frequencies = new Float32Array(100).fill(0.001);
    frequencies[9] = 0.9;
    const other = make({
      encode: (text) => Array.from(text, Number),
      frequencies,
      options: { smoothing: 0.02, numComponents: 0 },
    });
    expect(cosine(other.embed('09'), other.embed('9'))).toBeLessThan(cosine(other.embed('09'), other.embed('0')));
  });
  test('refuses text with no token, tokens that are none, and tables that do not fit', () => {
    expect(() => make().embed('')).toThrow(expect.objectContaining({ code: 'invalid_text' }));
    expect(() => make({ encode: () => [100] }).embed('x')).toThrow(expect.objectContaining({ code: 'invalid_token' }));
    expect(() => make({ frequencies: new Float32Array(3) })).toThrow(/3 frequencies for 100/);
    expect(() => make({ table: { width: 1e9, numRows: 1, readRow() {} } })).toThrow(
      expect.objectContaining({ code: 'invalid_option' }),
    );
    expect(() => make({ options: { colour: 1 } as never })).toThrow(/colour/);
  });
  test('returns a unit vector also when all rows are equal', () => {
    const vector = make({ table: { width: 8, numRows: 100, readRow: (_, out) => out.fill(1) } }).embed('x');
    expect(cosine(vector, vector)).toBe(1);
  });
});

test('[EM2] the fingerprint changes with whatever changes the vectors', () => {
  const changes: Partial<StaticEmbedderContext>[] = [
    {},
    { modelHash: 'other' },
    { options: { dim: 384 } },
    { options: { smoothing: 0.01 } },
    { options: { numComponents: 3 } },
    { options: { maxTokens: 7 } },
    { frequencies: new Float32Array(100).fill(0.01) },
    { table: randomTable(32, 100) },
  ];
  expect(new Set(changes.map((change) => make(change).fingerprint)).size).toBe(changes.length);
  expect(make().fingerprint).toBe(make().fingerprint);
});

describe('[EM3] the rotation', () => {
  test.each([
    [288, 768],
    [768, 768],
    [64, 384],
    [700, 768],
  ])('of %i to %i keeps lengths and angles', (width, dim) => {
    // prettier-ignore
    const random = createRandom(1);
    const vectors = Array.from({ length: 2 }, () => Float32Array.from({ length: width }, () => random.next() - 0.5));
    const rotation = createRotation(width, dim, 7);
    const turned = vectors.map((vector) => {
      const out = new Float32Array(dim);
      rotation.apply(vector, out);
      return out;
    });
    for (const [i, j] of [
      [0, 0],
      [0, 1],
      [1, 1],
    ] as const) {
      // prettier-ignore
      expect(cosine(turned[i]!, turned[j]!)).toBeCloseTo(cosine(vectors[i]!, vectors[j]!), 3);
    }
  });
  test('of more values than it keeps is near to it', () => {
    const random = createRandom(1);
    const vector = Float32Array.from({ length: 2048 }, () => random.next() - 0.5);
    const out = new Float32Array(768);
    createRotation(2048, 768, 7).apply(vector, out);
    expect(Math.abs(cosine(out, out) / cosine(vector, vector) - 1)).toBeLessThan(0.15);
  });
  test('spreads one value over all', () => {
    const out = new Float32Array(768);
    createRotation(288, 768, 7).apply(
      Float32Array.from({ length: 288 }, (_, i) => (i === 5 ? 1 : 0)),
      out,
    );
    expect(out.filter((value) => value !== 0).length).toBeGreaterThan(600);
  });
});

test('[EM4] the common components are the planted ones', () => {
  const random = createRandom(5);
  const gauss = () => random.next() + random.next() + random.next() - 1.5;
  const rows = Array.from({ length: 500 }, () => {
    const [a, b] = [gauss() * 10, gauss() * 4];
    return Float32Array.from({ length: 12 }, (_, i) => 2 + (i === 3 ? a : 0) + (i === 7 ? b : 0) + gauss() * 0.1);
  });
  const { mean, directions } = findCommonComponents(rows, 12, 2);
  expect(mean[0]).toBeCloseTo(2, 1);
  expect(Math.abs(directions[0]![3]!)).toBeCloseTo(1, 2);
  expect(Math.abs(directions[1]![7]!)).toBeCloseTo(1, 2);
});

const shared = fileURLToPath(new URL('../../../../shared', import.meta.url));
const modelPath = `${shared}models/stories15M-q8_0.gguf`;
const bankingPath = `${shared}suites/routing/banking77-train.csv`;
const isMissing = !existsSync(modelPath) || !existsSync(bankingPath);
if (isMissing) console.log('[EM5] skipped: the model stories15M and Banking77 are not beside the repository');

function openTable(): Omit<StaticEmbedderContext, 'sha256'> & { table: TokenTable } {
  const bytes = readFileSync(modelPath);
  const source = createMemorySource(new Uint8Array(bytes));
  const file = openGguf(source);
  const { type, dims, offset } = file.tensor('token_embd.weight');
  const [width, numRows] = dims as [number, number];
  const size = rowBytes(type, width);
  const buffer = new Uint8Array(size * numRows);
  source.readInto(buffer, offset);
  const tokenizer = createTokenizer(file.metadata);
  return {
    table: {
      width,
      numRows,
      readRow: (id, out) => dequantizeRow(type, buffer, out, width, { byteOffset: id * size }),
    },
    encode: (text) => tokenizer.encode(text),
    modelHash: createHash('sha256').update(bytes).digest('hex'),
    frequencies: estimateFrequencies(file.metadata.strings('tokenizer.ggml.tokens'), numRows),
  };
}

/** Four sums at a time: one alone waits for each addition, and there are billions. */
function dot(a: Float32Array, b: Float32Array): number {
  let [s0, s1, s2, s3] = [0, 0, 0, 0];
  for (let i = 0; i < a.length; i += 4) {
    s0 += a[i]! * b[i]!;
    s1 += a[i + 1]! * b[i + 1]!;
    s2 += a[i + 2]! * b[i + 2]!;
    s3 += a[i + 3]! * b[i + 3]!;
  }
  return s0 + s1 + (s2 + s3);
}

/** Share of queries whose nearest neighbour in the training part has the same intent. */
function intentAccuracy(
  embed: (text: string) => Float32Array,
  rows: readonly { text: string; category: string }[],
): number {
  const vectors = rows.map(({ text }) => embed(text));
  const isQuery = (index: number) => index % 5 === 0;
  let numRight = 0;
  let numQueries = 0;
  for (const [index, vector] of vectors.entries()) {
    if (!isQuery(index)) continue;
    let best = -2;
    let guess = '';
    for (const [other, candidate] of vectors.entries()) {
      if (isQuery(other)) continue;
      const similarity = dot(vector, candidate);
      if (similarity > best) [best, guess] = [similarity, rows[other]!.category];
    }
    numQueries++;
    if (guess === rows[index]!.category) numRight++;
  }
  return numRight / numQueries;
}

test.skipIf(isMissing)(
  '[EM5] finds the intent of a bank’s customers far more often than vectors that know nothing',
  () => {
    const lines = readFileSync(bankingPath, 'utf8').split('\n').slice(1);
    const parsed = lines
      .map((line) => /^"?(.*?)"?,([a-zA-Z_?]+)\r?$/.exec(line))
      .filter((match) => match !== null && match[1]!.trim() !== '') as string[][];
    const rows = parsed
      .filter((_, index) => index % 5 === 0)
      .map(([, text, category]) => ({ text: text!, category: category! }));
    const opened = openTable();
    const real = createStaticEmbedder({ ...opened, sha256 });
    const plain = createStaticEmbedder({ ...opened, sha256, options: { numComponents: 0, smoothing: 1 } });
    const byIds = createStaticEmbedder({
      ...opened,
      sha256,
      frequencies: estimateFrequencies(
        Array.from({ length: opened.table.numRows }, () => 'xx'),
        opened.table.numRows,
      ),
    });
    // Words are the same in both, so this control knows which tokens two texts share, and nothing of what they mean.
    const shuffled = createStaticEmbedder({ ...opened, table: randomTable(288, opened.table.numRows, 9), sha256 });
    const random = createRandom(11);
    const noise = () => Float32Array.from({ length: 768 }, () => random.next() - 0.5);
    const figures = {
      real: intentAccuracy((text) => real.embed(text), rows),
      byIds: intentAccuracy((text) => byIds.embed(text), rows),
      plainMean: intentAccuracy((text) => plain.embed(text), rows),
      randomRows: intentAccuracy((text) => shuffled.embed(text), rows),
      noise: intentAccuracy(noise, rows),
    };
    console.log(
      `[EM5] nearest-neighbour intent accuracy on ${rows.length} texts of Banking77:`,
      JSON.stringify(figures),
    );
    expect(figures.real).toBeGreaterThan(0.6);
    expect(figures.real).toBeGreaterThan(figures.byIds + 0.02);
    expect(figures.noise).toBeLessThan(0.05);
    expect(figures.real).toBeGreaterThan(figures.plainMean);
  },
);
