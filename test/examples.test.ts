import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { buildRandomModel } from './support/random-model.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-examples-'));
afterAll(() => rmSync(folder, { recursive: true }));

test.each(readdirSync('examples'))('examples/%s runs', (file) => {
  const model = join(folder, 'random.gguf');
  writeFileSync(model, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 1 }));
  const output = execFileSync(process.execPath, [join('examples', file), model], { encoding: 'utf8' });
  expect(output.length).toBeGreaterThan(20);
  expect(output).not.toContain('BUG');
});
