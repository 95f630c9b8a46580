import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { importBuilt } from './dist.ts';

/** A run of `ruvllm quantize` in a process of its own. */
export interface QuantizeRun {
  readonly seconds: number;
  readonly sourceBytes: number;
  readonly peakBytes: number;
  readonly largestTensorBytes: number;
}

/** Quantizes a file to Q4_K_M; the process reports its peak memory. */
export async function measureQuantize(source: string, target: string): Promise<QuantizeRun> {
  const args = ['bin/ruvllm.mjs', 'quantize', source, target, '--type', 'Q4_K_M', '--force', '--json'];
  const document = execFileSync(process.execPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const { openModelFile } = await importBuilt<typeof import('../../src/platform/node/files/open-model-file.ts')>(
    'platform/node/files/open-model-file',
  );
  const gguf = openModelFile(source);
  const largestTensorBytes = Math.max(...[...gguf.tensors.values()].map(({ sizeBytes }) => sizeBytes));
  gguf.source.close();
  const { seconds, sourceBytes, peakBytes } = JSON.parse(document) as QuantizeRun;
  return { seconds, sourceBytes, peakBytes, largestTensorBytes };
}

const LLAMA_FILE_TYPE_Q4_K_M = '15';

/** Quantizes with the library of llama.cpp that node-llama-cpp has; null if there is no compiler or no such library. */
export function quantizeWithLlamaCpp(source: string, target: string): string | null {
  const packages = '.cache/peers/node_modules/@node-llama-cpp';
  const library = findLibrary(packages);
  if (library === null) return null;
  const folder = dirname(library);
  const program = '.cache/bench/llama-quantize';
  try {
    if (!existsSync(program)) {
      const code = fileURLToPath(new URL('llama-quantize.c', codeFolder()));
      execFileSync('cc', ['-O1', '-o', program, code, library, `-Wl,-rpath,$ORIGIN/../../${folder}`, '-Wl,--allow-shlib-undefined']); // prettier-ignore
    }
    execFileSync(program, [source, target, LLAMA_FILE_TYPE_Q4_K_M], {
      stdio: 'ignore',
      env: { LD_LIBRARY_PATH: folder },
    });
    return target;
  } catch {
    rmSync(target, { force: true });
    return null;
  }
}

/** Compiled tools are elsewhere than the sources that they read. */
const codeFolder = (): URL =>
  new URL(import.meta.url.includes('/.cache/tools/') ? '../../../../bench/support/' : './', import.meta.url);

function findLibrary(packages: string): string | null {
  if (!existsSync(packages)) return null;
  for (const name of readdirSync(packages)) {
    const bins = join(packages, name, 'bins');
    for (const build of existsSync(bins) ? readdirSync(bins) : []) {
      const library = readdirSync(join(bins, build)).find((file) => /^libllama(?:\.v[\d.]+)?\.so$/.test(file));
      if (library !== undefined) return join(bins, build, library);
    }
  }
  return null;
}
