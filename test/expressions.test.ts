// Foreign text reaches almost every regular expression sooner or later, and one that takes quadratic time stops a server with a few
// kilobytes. So no expression of the product may be worse than linear.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseSync, Visitor } from 'rolldown/utils';
import { analyse } from 'scslre';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');

interface Expression {
  readonly place: string;
  readonly source: string;
  readonly flags: string;
}

function expressionsOf(path: string): Expression[] {
  const text = readFileSync(path, 'utf8');
  const expressions: Expression[] = [];
  new Visitor({
    Literal(node) {
      if (!('regex' in node)) return;
      const line = text.slice(0, node.start).split('\n').length;
      const { pattern: source, flags } = node.regex;
      expressions.push({ place: `${relative(root, path)}:${line}`, source, flags });
    },
  }).visit(parseSync(path, text).program);
  return expressions;
}

const sources = ['src', 'dashboard/src'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !/\.(?:test|contract|d)\.ts$|[\\/]assembly[\\/]/.test(name))
    .map((name) => join(root, folder, name)),
);
const all = sources.flatMap(expressionsOf);

/** How an expression can be slow, such as "Move" for one that is tried from every position; empty: it is linear. */
const slownessOf = ({ source, flags }: Pick<Expression, 'source' | 'flags'>): string[] =>
  analyse({ source, flags }).reports.map(({ type, exponential }) => (exponential ? `${type}, exponential` : type));

describe('regular expressions of the product', () => {
  test('are all found', () => {
    expect(all.length).toBeGreaterThan(500);
    expect(all.map(({ place }) => place)).toEqual(expect.arrayContaining([expect.stringMatching(/^src\/memory\/documents\/markdown\.ts:/)])); // prettier-ignore
  });

  test('take linear time', () => {
    const slow = all.flatMap((one) =>
      slownessOf(one).map((type) => `${one.place} /${one.source}/${one.flags}: ${type}`),
    );
    expect(slow).toEqual([]);
  });

  test.each([
    ['a heading whose title, spaces and marks overlap', /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?[ \t]*#*[ \t]*$/],
    ['white space at the end', /\s+$/],
    ['repetitions of repetitions', /^(?:a+)+$/],
    ['a bracket that is never closed', /\[[^\]]*\]/],
  ])('are refused if they are slow: %s', (_, { source, flags }) => {
    expect(slownessOf({ source, flags })).not.toEqual([]);
  });
});
