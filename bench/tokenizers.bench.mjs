// Encoding and decoding speed per vocabulary, single thread. Build first; vocabularies come from ../shared, or from the
// files named on the command line.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createMemorySource } from '../dist/core/byte-source.js';
import { openGguf } from '../dist/gguf/index.js';
import { createTokenizer } from '../dist/tokenizers/index.js';

const shared = join(import.meta.dirname, '../../shared');
const suites = join(shared, 'suites/tokenizers');
const wikitext = join(shared, 'suites/text/wikitext2-valid.txt');
const named = process.argv.slice(2);
const inSuites = existsSync(suites) ? readdirSync(suites).filter((name) => name.endsWith('.gguf')) : [];
const files = named.length > 0 ? named : inSuites.map((name) => join(suites, name));

function generatedText() {
  let state = 1;
  const next = (n) => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) % n;
  const letter = () => String.fromCharCode(97 + Math.min(next(26), next(26)));
  const words = Array.from({ length: 20_000 }, () => Array.from({ length: 2 + next(9) }, letter).join(''));
  return Array.from({ length: 170_000 }, () => words[Math.min(next(20_000), next(20_000), next(20_000))]).join(' ');
}

// CPU time of this process: on a machine shared with others the wall clock measures them too.
function cpuMs(run) {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

function measure(file, text) {
  const { metadata } = openGguf(createMemorySource(readFileSync(file), file));
  let tokenizer;
  const createMs = cpuMs(() => (tokenizer = createTokenizer(metadata)));
  const firstEncodeMs = cpuMs(() => tokenizer.encode('Hello world'));
  const coldMs = cpuMs(() => tokenizer.encode(text));
  const warm = Array.from({ length: 5 }, () => cpuMs(() => tokenizer.encode(text)));
  const ids = tokenizer.encode(text);
  const decode = Array.from({ length: 3 }, () => cpuMs(() => tokenizer.decode(ids)));
  const longMs = cpuMs(() => tokenizer.encode('a'.repeat(1_000_000)));
  const megabytes = Buffer.byteLength(text) / 1e6;
  const round = (value) => Math.round(value * 100) / 100;
  return {
    vocabulary: basename(file, '.gguf'),
    kind: tokenizer.kind,
    vocabSize: tokenizer.vocabSize,
    createMs: round(createMs),
    firstEncodeMs: round(firstEncodeMs),
    coldMBps: round(megabytes / (coldMs / 1000)),
    warmMBps: round(megabytes / (median(warm) / 1000)),
    decodeMtokps: round(ids.length / 1000 / median(decode)),
    oneMegabyteWordMs: round(longMs),
  };
}

const text = existsSync(wikitext) ? readFileSync(wikitext, 'utf8') : generatedText();
const results = files.map((file) => measure(file, text));
console.table(results);
console.log(JSON.stringify({ bench: 'tokenizers', textBytes: Buffer.byteLength(text), results }));
