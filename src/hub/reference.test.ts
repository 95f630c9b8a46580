import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RuvLLMError } from '../core/errors.ts';
import { formatModelReference, parseModelReference } from './reference.ts';
import { isSafeRelativePath } from './safe-path.ts';

const hub = (owner: string, repo: string, quant: string | null = null, file: string | null = null) => ({
  kind: 'huggingface',
  owner,
  repo,
  quant,
  file,
});

describe('parseModelReference', () => {
  test.each([
    ['model.gguf', { kind: 'path', path: 'model.gguf' }],
    ['MODEL.GGUF', { kind: 'path', path: 'MODEL.GGUF' }],
    ['a/b/c.gguf', { kind: 'path', path: 'a/b/c.gguf' }],
    ['./model', { kind: 'path', path: './model' }],
    ['../up', { kind: 'path', path: '../up' }],
    ['/abs/model', { kind: 'path', path: '/abs/model' }],
    ['~/model', { kind: 'path', path: '~/model' }],
    ['C:\\models\\x', { kind: 'path', path: 'C:\\models\\x' }],
    ['owner/repo', hub('owner', 'repo')],
    ['Qwen/Qwen2.5-0.5B-Instruct-GGUF:q4_k_m', hub('Qwen', 'Qwen2.5-0.5B-Instruct-GGUF', 'q4_k_m')],
    ['hf:owner/repo', hub('owner', 'repo')],
    ['hf:owner/repo/sub/file.gguf', hub('owner', 'repo', null, 'sub/file.gguf')],
    ['hf:owner/repo.gguf', hub('owner', 'repo.gguf')],
    ['hf:owner/repo:x.GGUF', hub('owner', 'repo', 'x.GGUF')],
    ['npm:tiny', { kind: 'npm', packages: [{ name: 'tiny', version: null, file: null }] }],
    [
      'npm:@scope/a@1.2.3-rc.1#dir/m.part+b@next',
      {
        kind: 'npm',
        packages: [
          { name: '@scope/a', version: '1.2.3-rc.1', file: 'dir/m.part' },
          { name: 'b', version: 'next', file: null },
        ],
      },
    ],
  ])('%s', (text, expected) => {
    const parsed = parseModelReference(text);
    expect(parsed).toEqual(expected);
    expect(parseModelReference(formatModelReference(parsed))).toEqual(parsed);
  });

  test('prefers an existing local file to any other meaning', () => {
    for (const text of ['owner/repo', 'npm:tiny', 'word']) {
      expect(parseModelReference(text, (path) => path === text)).toEqual({ kind: 'path', path: text });
    }
  });

  test.each([
    '',
    '  ',
    'word',
    'owner/',
    'a/'.repeat(2500),
    'owner/repo:',
    'owner/repo:Q4 K',
    'owner/repo/file.bin',
    'hf:owner/repo/../x.gguf',
    'hf:owner/repo/a\\b.gguf',
    'hf:../repo',
    'hf:owner/..',
    'hf:ow--ner/repo',
    'hf:npm/tiny',
    'hf:owner',
    'owner/repo\n',
    'npm:',
    'npm:--registry=x',
    'npm:-g',
    'npm:a+',
    'npm:a@',
    'npm:a@^1.0.0',
    'npm:a@-x',
    'npm:a b',
    'npm:../a',
    'npm:@scope',
    'npm:a#../x.gguf',
    'npm:a#',
    `npm:${Array(65).fill('a').join('+')}`,
  ])('rejects %j', (text) => {
    expect(() => parseModelReference(text)).toThrow(RuvLLMError);
    expect(() => parseModelReference(text)).toThrow(/^model "/);
  });

  test('parses any input and prints it back, or reports invalid_option; npm names never start with a dash', () => {
    const pieces = fc.constantFrom(
      'npm:',
      'hf:',
      'a',
      '-',
      '--',
      '@',
      '/',
      '+',
      '#',
      ':',
      '..',
      '.gguf',
      '~',
      '\\',
      '1.0.0',
      ' ',
      '\0',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        try {
          const parsed = parseModelReference(parts.join(''));
          expect(parseModelReference(formatModelReference(parsed))).toEqual(parsed);
          if (parsed.kind === 'npm') for (const { name } of parsed.packages) expect(name).not.toMatch(/^-|\.\./);
        } catch (error) {
          if (!(error instanceof RuvLLMError)) throw error;
          expect(error.code).toBe('invalid_option');
        }
      }),
      { numRuns: 3000 },
    );
  });
});

test('isSafeRelativePath rejects paths that leave a folder', () => {
  for (const path of ['a', 'a/b.gguf', 'a..b', '.hidden/x', 'é/日本.gguf'])
    expect([path, isSafeRelativePath(path)]).toEqual([path, true]);
  const bad = [
    '',
    '/',
    '/a',
    'a/',
    'a//b',
    '.',
    '..',
    'a/..',
    '../a',
    'a/./b',
    'a\\b',
    'c:a',
    'a\0',
    'a\n',
    'a.',
    'a ',
    'a/b./c',
    'x'.repeat(256),
  ];
  for (const path of bad) expect([path, isSafeRelativePath(path)]).toEqual([path, false]);
});
