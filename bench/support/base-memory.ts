// Memory of the runtime beyond Node's own before anything is loaded. Each figure comes from separate processes that
// were idle for a second, without a forced collection, like in `top`.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median } from './report.ts';

const MIB = 2 ** 20;
const RUNS = 5;
const IDLE_MS = 1000;

/** MiB beyond plain Node. */
export interface BaseMemory {
  /** After importing the library. */
  readonly library: number;
  /** Also with an open memory without records. */
  readonly memory: number;
  /** Also with the model loader imported; no model is loaded. */
  readonly loader: number;
}

/** Resident memory of the empty runtime: the median of interleaved processes of each kind. */
export function measureBaseMemory(): BaseMemory {
  const urlOf = (path: string): string => JSON.stringify(new URL(`../../../../dist/${path}`, import.meta.url).href);
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-bench-base-'));
  const tell = `setTimeout(() => { console.log(process.memoryUsage().rss); process.exit(0); }, ${IDLE_MS});`;
  const library = `const { openMemory } = await import(${urlOf('index.js')});`;
  const memory = `${library} await openMemory({ place: ${JSON.stringify(folder)}, masterKey: { key: new Uint8Array(32) }, modelPath: null });`;
  const scripts = {
    bare: '',
    library,
    memory,
    loader: `${memory} await import(${urlOf('node/load-model.js')});`,
  };
  const rssOf = (script: string): number =>
    Number(execFileSync(process.execPath, ['--input-type=module', '-e', script + tell], { encoding: 'utf8' }));
  try {
    const runs = Array.from({ length: RUNS }, () =>
      Object.fromEntries(Object.entries(scripts).map(([name, script]) => [name, rssOf(script)])),
    );
    const beyondBare = (name: keyof BaseMemory): number =>
      (median(runs.map((run) => run[name]!)) - median(runs.map((run) => run.bare!))) / MIB;
    return { library: beyondBare('library'), memory: beyondBare('memory'), loader: beyondBare('loader') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// When run directly, prints the figures of the Node that runs it.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(JSON.stringify({ node: process.versions.node, ...measureBaseMemory() }));
}
