// Writes src/kernels/wasm/small-bytes.ts: the compiled assembly/small. Run it after changing that
// source; --print writes to the output instead.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeTool, root } from './setup.mjs';

const LINE = 110;

function smallBytes() {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-wasm-'));
  try {
    const out = join(folder, 'small.wasm');
    const source = join(root, 'src/kernels/wasm/assembly/small/index.ts');
    const flags = ['-O3', '--noAssert', '--runtime', 'stub', '--enable', 'simd', '--importMemory'];
    execFileSync(...nodeTool('assemblyscript/bin/asc.js', source, ...flags, '-o', out), { stdio: 'inherit' });
    const lines = readFileSync(out)
      .toString('base64')
      .match(new RegExp(`.{1,${LINE}}`, 'g'));
    return [
      '// Written by scripts/build-small-kernels.mjs from assembly/small.',
      '/** The module in base64: small enough to travel with the code, so that no platform has to load it. */',
      'export const SMALL_KERNELS = [',
      ...lines.map((line) => `  '${line}',`),
      "].join('');",
      '',
    ].join('\n');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const text = smallBytes();
if (process.argv.includes('--print')) process.stdout.write(text);
else writeFileSync(join(root, 'src/kernels/wasm/small-bytes.ts'), text);
