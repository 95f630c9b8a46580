// Encoding and decoding speed per vocabulary, single thread: the vocabularies of ../shared, or the files on the command line.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { importBuilt } from './support/dist.ts';
import { median, printTable } from './support/report.ts';

const { createMemorySource } = await importBuilt<typeof import('../src/core/byte-source.ts')>('core/byte-source');
const { openGguf } = await importBuilt<typeof import('../src/gguf/index.ts')>('gguf/index');
const { createTokenizer } = await importBuilt<typeof import('../src/tokenizers/index.ts')>('tokenizers/index');

const WORD_LENGTH = 1_000_000;
const suites = '../shared/suites/tokenizers';
const wikitext = '../shared/suites/text/wikitext2-valid.txt';

function vocabularyFiles(): string[] {
  const paths = process.argv.slice(2);
  if (paths.length > 0 || !existsSync(suites)) return paths;
  const names = readdirSync(suites).filter((name) => name.endsWith('.gguf'));
  return names.map((name) => join(suites, name));
}

function generatedText(): string {
  let state = 1;
  // The high bits: the low ones of such a generator repeat after a few numbers.
  const next = (n: number): number => ((state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 8) % n;
  const letter = (): string => String.fromCharCode(97 + Math.min(next(26), next(26)));
  const words = Array.from({ length: 20_000 }, () => Array.from({ length: 2 + next(9) }, letter).join(''));
  return Array.from({ length: 170_000 }, () => words[Math.min(next(20_000), next(20_000), next(20_000))]).join(' ');
}

/** CPU time of this process: on a shared machine the wall clock includes others. */
function cpuMs(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function measure(file: string, text: string) {
  const { metadata } = openGguf(createMemorySource(readFileSync(file), file));
  const createMs = cpuMs(() => void createTokenizer(metadata));
  const tokenizer = createTokenizer(metadata);
  const firstEncodeMs = cpuMs(() => void tokenizer.encode('Hello world'));
  const coldMs = cpuMs(() => void tokenizer.encode(text));
  const warmMs = median(Array.from({ length: 5 }, () => cpuMs(() => void tokenizer.encode(text))));
  const ids = tokenizer.encode(text);
  const decodeMs = median(Array.from({ length: 3 }, () => cpuMs(() => void tokenizer.decode(ids))));
  const longWordMs = cpuMs(() => void tokenizer.encode('a'.repeat(WORD_LENGTH)));
  const megabytes = Buffer.byteLength(text) / 1e6;
  return {
    vocabulary: basename(file, '.gguf'),
    kind: tokenizer.kind,
    vocabSize: tokenizer.vocabSize,
    createMs,
    firstEncodeMs,
    coldMBps: (megabytes * 1000) / coldMs,
    warmMBps: (megabytes * 1000) / warmMs,
    decodeMtokps: ids.length / 1000 / decodeMs,
    longWordMs,
  };
}

const files = vocabularyFiles();
if (files.length === 0) {
  console.error(`no vocabularies in ${suites}\nnext: npm run bench -- tokenizers FILE.gguf …`);
  process.exit(2);
}
const text = existsSync(wikitext) ? readFileSync(wikitext, 'utf8') : generatedText();
const results = files.map((file) => measure(file, text));
console.log(`${(Buffer.byteLength(text) / 1e6).toFixed(2)} MB of text, CPU time of one thread`);
printTable([
  ['', 'kind', 'size', 'start ms', 'first ms', 'cold MB/s', 'warm MB/s', 'decode Mtok/s', '1 MB word ms'],
  ...results.map((result) => [
    result.vocabulary,
    result.kind,
    String(result.vocabSize),
    result.createMs.toFixed(1),
    result.firstEncodeMs.toFixed(1),
    result.coldMBps.toFixed(2),
    result.warmMBps.toFixed(2),
    result.decodeMtokps.toFixed(2),
    result.longWordMs.toFixed(0),
  ]),
]);
console.log(JSON.stringify({ bench: 'tokenizers', textBytes: Buffer.byteLength(text), results }));
