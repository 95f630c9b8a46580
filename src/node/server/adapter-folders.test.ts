import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { buildRandomModel } from '../../../test/support/random-model.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createAdapterFolders } from './adapter-folders.ts';

const SECRET = 'sesame-open';
let root: string;
let inside: string;
let find: (path: string) => Promise<string>;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ruvllm-adapter-folders-'));
  inside = join(root, 'adapters');
  for (const folder of [inside, join(inside, 'peft'), join(root, 'adapters-of-others')]) mkdirSync(folder);
  writeFileSync(join(root, 'secret.gguf'), SECRET);
  writeFileSync(join(root, 'adapters-of-others', 'secret.gguf'), SECRET);
  // The format of a GGUF file is enough here; whether it fits a model is checked when it is loaded.
  writeFileSync(join(inside, 'good.gguf'), buildRandomModel({ architecture: 'llama', type: 'F32', seed: 1 }));
  find = createAdapterFolders([join(root, 'missing'), inside]);
});
afterEach(() => rmSync(root, { recursive: true }));

const refusalOf = async (path: string): Promise<RuvLLMError> => {
  const error = await find(path).catch((reason: unknown) => reason);
  expect([path, error]).toEqual([path, expect.any(RuvLLMError)]);
  return error as RuvLLMError;
};

test('[K10] finds adapters in its folders, by an absolute path and a relative one', async () => {
  expect(await find(join(inside, 'good.gguf'))).toBe(await find('good.gguf'));
  expect(await find('peft/../good.gguf')).toBe(await find('good.gguf'));
});

test('[K10] files outside, missing files and links that lead outside have one error', async () => {
  symlinkSync(join(root, 'secret.gguf'), join(inside, 'link.gguf'));
  symlinkSync(root, join(inside, 'up'));
  symlinkSync(join(root, 'secret.gguf'), join(inside, 'peft', 'adapter_config.json'));
  writeFileSync(join(inside, 'peft', 'adapter_model.safetensors'), '');
  const paths = [
    '/etc/passwd',
    '/dev/stdin',
    '/proc/self/environ',
    join(root, 'secret.gguf'),
    join(root, 'none.gguf'),
    'none.gguf',
    '../secret.gguf',
    '../adapters-of-others/secret.gguf',
    'link.gguf',
    'up/secret.gguf',
    'peft',
    'peft/adapter_model.safetensors',
    '.',
    '..',
    '',
    '\0',
    'a'.repeat(5000),
    relative(process.cwd(), join(root, 'secret.gguf')),
  ];
  for (const path of paths) {
    const { code, message, data } = await refusalOf(path);
    const shown = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
    expect([code, message.replace(shown, 'PATH'), data]).toEqual([
      'not_found',
      'PATH is no adapter in the 2 folders of adapters of this server; --adapter-folder adds one',
      {},
    ]);
  }
});

test('[K10] a file inside that is no adapter gives no byte of its content', async () => {
  rmSync(join(inside, 'peft'), { recursive: true });
  mkdirSync(join(inside, 'peft'));
  writeFileSync(join(inside, 'bad.gguf'), SECRET);
  writeFileSync(join(inside, 'peft', 'adapter_model.safetensors'), SECRET);
  writeFileSync(join(inside, 'peft', 'adapter_config.json'), `root:${SECRET}`);
  execFileSync('mkfifo', [join(inside, 'pipe.gguf')]);
  for (const path of ['bad.gguf', 'peft', 'peft/adapter_model.safetensors', 'pipe.gguf']) {
    const { code, message } = await refusalOf(path);
    expect([code, message]).toEqual(['invalid_model_file', expect.stringMatching(/ is not an adapter: it must be a /)]);
    expect(message).not.toMatch(/sesa|0x/);
  }
});
