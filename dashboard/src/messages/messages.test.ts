import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'vite';
import { expect, test } from 'vitest';
import { chooseLanguage } from '../format/language.ts';
import { de } from './de/index.ts';
import { en } from './en/index.ts';
import { zh } from './zh/index.ts';

/** Folders whose texts still have to move here. */
const PENDING: readonly string[] = [];

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const hasWord = (text: string): boolean => /\p{L}{2}/u.test(text);
/** Attributes whose value a user reads or hears. */
const TEXT_ATTRIBUTES = /^(?:label|title|hint|placeholder|alt|action|summary|aria-label|aria-description)$/;
/** A string literal that reads as a sentence: a capital, and a second word. */
const SENTENCE = /^[A-Z][\p{L}]* \p{L}/u;

interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Texts in a source file that belong into the messages. */
function textsIn(path: string): string[] {
  const texts: string[] = [];
  const visit = (node: Node, attribute = ''): void => {
    if (node.type === 'ImportDeclaration') return;
    const text =
      node.type === 'JSXText' || (node.type === 'Literal' && typeof node['value'] === 'string')
        ? (node['value'] as string).trim()
        : node.type === 'TemplateLiteral'
          ? (node['quasis'] as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('…')
          : '';
    const isText = node.type === 'JSXText' || TEXT_ATTRIBUTES.test(attribute) ? hasWord(text) : SENTENCE.test(text);
    if (isText) texts.push(text);
    const name = node.type === 'JSXAttribute' ? (node['name'] as { name: string }).name : '';
    for (const child of Object.values(node).flat()) {
      if (typeof child === 'object' && child !== null && 'type' in child) visit(child as Node, name);
    }
  };
  visit(parseSync(path, readFileSync(path, 'utf8')).program as unknown as Node);
  return texts;
}

test('components contain no text: it is in the messages', () => {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => /^(?:app|components|views)\/.*(?<!\.test)\.tsx?$/.test(file));
  const done = files.filter((file) => !PENDING.some((folder) => file.startsWith(`${folder}/`)));
  expect(done.flatMap((file) => textsIn(join(root, file)).map((text) => `${file}: ${text}`))).toEqual([]);
  expect(files.length).toBeGreaterThan(40);
});

/** The texts of one language by path; functions get placeholders as arguments. */
function flatten(value: unknown, path = ''): [path: string, text: string][] {
  if (typeof value === 'function') return flatten(value(...Array.from({ length: value.length }, () => '7')), path);
  if (typeof value === 'string') return [[path, value]];
  return Object.entries(value as object).flatMap(([key, inner]) => flatten(inner, `${path}.${key}`));
}

test.each([
  ['German', de],
  ['Chinese', zh],
])('%s has every text, with the arguments of the English one, and translates it', (_, translation) => {
  const original = new Map(flatten(en));
  const translated = new Map(flatten(translation));
  expect([...translated.keys()]).toEqual([...original.keys()]);
  const isLong = (text: string): boolean => text.split(' ').length > 3;
  const unchanged = [...original].filter(([path, text]) => isLong(text) && translated.get(path) === text);
  expect(unchanged).toEqual([]);
  const lost = [...original].filter(([path, text]) => text.includes('7') && !translated.get(path)!.includes('7'));
  expect(lost).toEqual([]);
});

test('the language is the stored one, else the first known of the browser, else English', () => {
  expect(chooseLanguage('zh', ['de-AT'])).toBe('zh');
  expect(chooseLanguage(null, ['fr', 'de-AT', 'en'])).toBe('de');
  expect(chooseLanguage('klingon', ['zh-CN'])).toBe('zh');
  expect(chooseLanguage(null, [])).toBe('en');
  expect(chooseLanguage('toString', ['constructor'])).toBe('en');
});
