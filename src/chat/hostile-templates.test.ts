import { describe, expect, test } from 'vitest';
import { RuvLLMError } from '../core/errors.ts';
import { createChatTemplate } from './chat-template.ts';
import type { TemplateLimits } from './jinja/limits.ts';

function render(source: string, limits: Partial<TemplateLimits> = {}, now?: () => number): string {
  const template = createChatTemplate({
    source,
    architecture: null,
    bosToken: '<s>',
    eosToken: '</s>',
    specialSpellings: [],
    limits,
    ...(now && { now }),
  });
  return template.render([{ role: 'user', content: 'hello' }]).text;
}

function failure(source: string, limits: Partial<TemplateLimits> = {}, now?: () => number): RuvLLMError {
  try {
    render(source, limits, now);
  } catch (error) {
    if (error instanceof RuvLLMError && error.code === 'template_error') return error;
    throw error;
  }
  throw new Error('the template rendered');
}

const doubling = (seed: string, step: string, times = 60): string =>
  `{% set ns = namespace(x=${seed}) %}${`{% set ns.x = ${step} %}`.repeat(times)}`;
/** "Billion laughs": 40 levels of lists that refer twice to the previous list. */
const LAUGHS = doubling("['ha']", '[ns.x, ns.x]', 40);
const BIG = `{% set big = 'a' * 8000000 %}`;

describe('rejects hostile templates with the limit they exceed', () => {
  test.each<[string, string, keyof TemplateLimits]>([
    ['string repetition', "{{ 'a' * 1000000000 }}", 'maxTextBytes'],
    ['repetition from the left', "{{ 1000000000 * 'a' }}", 'maxTextBytes'],
    ['list repetition', '{{ [1] * 1000000000 }}', 'maxItems'],
    ['range of two billion', '{% for i in range(2000000000) %}{% endfor %}', 'maxItems'],
    ['range with a start', '{{ range(5, 2000000000, 2) | length }}', 'maxItems'],
    ['nested loops', '{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}', 'maxSteps'],
    ['output in a loop', `{% for i in range(90000) %}{{ 'x' * 1000 }}{% endfor %}`, 'maxTextBytes'],
    ['concatenation doubling', doubling("'aaaaaaaa'", 'ns.x + ns.x'), 'maxTextBytes'],
    ['tilde doubling', doubling("'aaaaaaaa'", 'ns.x ~ ns.x'), 'maxTextBytes'],
    ['replace doubling', doubling("'aaaaaaaa'", "ns.x.replace('a', 'aa')"), 'maxItems'],
    ['replace filter', `${BIG}{{ 'aaaaaaaa' | replace('', big) }}`, 'maxTextBytes'],
    ['replace with itself', `${BIG}{{ 'abc'.replace('b', big) ~ big }}`, 'maxTextBytes'],
    ['list doubling', doubling('[1, 2]', 'ns.x + ns.x'), 'maxItems'],
    ['extend itself', `{% set x = [1, 2] %}${'{% set _ = x.extend(x) %}'.repeat(60)}`, 'maxItems'],
    ['join of one big string many times', `${BIG}{{ [big, big, big] | join }}`, 'maxTextBytes'],
    ['join with a big separator', `${BIG}{{ range(1000) | join(big) }}`, 'maxTextBytes'],
    ['str.join', `${BIG}{{ big.join(['a', 'b', 'c']) }}`, 'maxTextBytes'],
    ['indent by a billion', "{{ 'a\\nb' | indent(1000000000) }}", 'maxTextBytes'],
    ['indent by a big string', `${BIG}{{ 'a\\nb\\nc\\nd' | indent(big) }}`, 'maxTextBytes'],
    ['laughs printed', `${LAUGHS}{{ ns.x }}`, 'maxSteps'],
    ['laughs as JSON', `${LAUGHS}{{ ns.x | tojson }}`, 'maxSteps'],
    ['laughs as a string', `${LAUGHS}{{ ns.x | string }}`, 'maxSteps'],
    ['laughs compared', `${LAUGHS}{% set a = ns.x %}${LAUGHS}{{ a == ns.x }}`, 'maxSteps'],
    ['laughs in laughs', `${LAUGHS}{{ 'x' ~ ns.x }}`, 'maxSteps'],
    ['macro recursion', '{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}', 'maxDepth'],
    ['two macros', '{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}', 'maxDepth'],
    ['caller recursion', '{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}', 'maxDepth'],
    ['a list inside itself', '{% set x = [] %}{% set _ = x.append(x) %}{{ x }}', 'maxDepth'],
    ['a list inside itself as JSON', '{% set x = [] %}{% set _ = x.append(x) %}{{ x | tojson }}', 'maxDepth'],
    ['a namespace inside itself', '{% set n = namespace() %}{% set n.n = n %}{{ n | tojson }}', 'maxDepth'],
    ['a long chain of operators', `{{ ${'1 + '.repeat(5000)}1 }}`, 'maxDepth'],
    ['a long chain of members', `{{ x${'.a'.repeat(5000)} }}`, 'maxDepth'],
    ['quadratic search', `${BIG}{{ ('a' * 4000000 + 'b') in big }}`, 'maxWorkBytes'],
    ['work in a loop', `${BIG}{% for i in range(90000) %}{% set y = big | upper %}{% endfor %}`, 'maxWorkBytes'],
    [
      'split in a loop',
      `{% set s = 'a ' * 50000 %}{% for i in range(90000) %}{% set y = s.split() %}{% endfor %}`,
      'maxWorkBytes',
    ],
    ['characters of a big string', `${BIG}{{ big | list | length }}`, 'maxItems'],
  ])('%s', (_name, source, limit) => {
    // A stopped clock: the limit reached must not depend on the machine.
    const { data, message } = failure(source, { maxSteps: 200_000, maxWorkBytes: 134_217_728 }, () => 0);
    expect(data['limit'], message).toBe(limit);
    expect(data['used']).toBeGreaterThan(data['max'] as number);
    expect(message).toContain(String(data['max']));
  });
});

describe('source that would overflow the parser', () => {
  test.each([
    ['parentheses', `{{ ${'('.repeat(60_000)}1${')'.repeat(60_000)} }}`],
    ['brackets', `{{ ${'['.repeat(60_000)} }}`],
    ['braces', `{{ ${'{1:'.repeat(30_000)} }}`],
    ['not', `{{ ${'not '.repeat(30_000)}x }}`],
    ['minus', `{{ ${'- '.repeat(30_000)}1 }}`],
    ['ternaries', `{{ ${'1 if x else '.repeat(9_000)}2 }}`],
    ['calls', `{{ f${'()'.repeat(30_000)} }}`],
    ['ifs', '{% if x %}'.repeat(12_000)],
    ['elifs', `{% if x %}${'{% elif x %}'.repeat(9_000)}{% endif %}`],
  ])('rejects 60,000 characters of nested %s by depth', (_name, source) => {
    expect(failure(source).message).toMatch(/nested \d+ deep, limit 128/);
  });

  test('rejects a long source and a long run of whitespace by length', () => {
    expect(failure('x'.repeat(131_073)).message).toContain('131073 characters, limit 131072');
    expect(failure(`a${' '.repeat(1_000)}`).message).toContain('1000 whitespace characters at 1');
    expect(render(`a${' '.repeat(999)}b`)).toHaveLength(1001);
  });

  test('does not count 128 sequential tags as nesting', () => {
    expect(render('{% if true %}{{ (1) }}{% elif x %}{% endif %}'.repeat(300))).toBe('1'.repeat(300));
  });

  test('reports invalid syntax as template_error', () => {
    for (const source of [
      '{{',
      '{% if %}',
      '{% for x %}',
      '{{ "a }}',
      '{% endif %}',
      '{{ 1 + }}',
      '{% include "x" %}',
    ]) {
      expect(failure(source).message).toMatch(/^chat template does not parse: /);
    }
  });
});

test.each([
  ['{{ ok }}\n{# {{ #}{% if a %}\n  {{ a.. }}{% endif %}', 'line 3, column 3'],
  ['a {{ x }}\n b {{ ? }} {{ y }}', 'line 2, column 4'],
  ["x\n{% for m in messages %}{{ m['a }}\n{% endfor %}", 'line 2, column 24'],
  ['{% if a %}\nx', 'unexpected end, a tag is not closed'],
])('says where %j does not parse', (source, position) => {
  expect(failure(source).message).toContain(position);
});

test('reads the clock often enough to stop a slow template', () => {
  let nowMs = 0;
  const error = failure('{% for i in range(90000) %}{{ i }}{% endfor %}', { maxTimeMs: 50 }, () => (nowMs += 10));
  expect(error.data).toEqual({ limit: 'maxTimeMs', used: 60, max: 50 });
});

test('accepts lower limits and rejects unknown ones', () => {
  expect(failure('{{ 1 }}{{ 2 }}{{ 3 }}', { maxSteps: 10 }).data['limit']).toBe('maxSteps');
  expect(failure("{{ 'abc' * 2 }}", { maxTextBytes: 10 }).data).toEqual({ limit: 'maxTextBytes', used: 12, max: 10 });
  expect(() => render('', { maxFun: 1 } as object)).toThrow('unknown option "maxFun"');
});

test('carries the message of raise_exception', () => {
  const error = failure("{{ raise_exception('only users, please') }}");
  expect(error.data).toEqual({ raised: 'only users, please' });
  expect(error.message).toContain('only users, please');
});

test.each([
  '{{ messages.__proto__ }}',
  '{{ messages.constructor }}',
  "{{ messages['__proto__'] }}",
  "{{ messages[0]['constructor'] }}",
  '{{ messages[0].__proto__ }}',
  "{{ 'x'.constructor }}",
  "{{ 'x'['constructor'] }}",
  '{{ range.constructor }}',
  '{{ namespace().__proto__ }}',
  '{{ constructor }}{{ globalThis }}{{ process }}{{ this }}',
  "{{ messages | map(attribute='__proto__') | join }}",
  "{{ (messages | map(attribute='constructor') | list)[0] }}",
  '{{ messages.push }}{{ messages.length }}',
])('%s does not reach JavaScript objects', (source) => {
  expect(render(source)).toBe('');
});

test('names a missing function that is called', () => {
  expect(failure("{{ 'x'.constructor('y') }}").message).toContain('"constructor" is undefined, not a function');
  expect(failure('{{ x | constructor }}').message).toContain('unknown filter "constructor"');
  expect(failure('{{ x is constructor }}').message).toContain('unknown test "constructor"');
});
