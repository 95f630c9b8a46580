import { expect, test } from 'vitest';
import { createChatTemplate } from '../chat-template.ts';

function render(source: string, variables: Record<string, unknown> = {}): string {
  const template = createChatTemplate({
    source,
    architecture: null,
    bosToken: '<s>',
    eosToken: '</s>',
    specialSpellings: [],
    now: () => Date.UTC(2024, 6, 4, 15, 5, 9),
    utcOffsetMinutes: 120,
  });
  return template.render([], { variables }).text;
}

// The output of Python's Jinja2 3.1 for the same source.
test.each([
  ["{{ 'xxabcxx'.strip('x') }}|{{ '\\n a '.lstrip('\\n') }}|{{ ' a '.rstrip() }}", 'abc| a | a'],
  ["{{ 'a,b,c'.split(',', 1) }}{{ ' a  b c '.split() }}", "['a', 'b,c']['a', 'b', 'c']"],
  ["{{ ' a  b c '.split(none, 1) }}{{ 'a-b-c'.rsplit('-', 1) }}", "['a', 'b c ']['a-b', 'c']"],
  ["{{ 'aaa'.replace('a', 'b', 2) }}{{ 'ab'.replace('', '-') }}", 'bba-a-b-'],
  ["{{ 'hello world'.title() }}{{ 'hELLO'.capitalize() }}{{ 'a.b'.endswith(('.b', 'x')) }}", 'Hello WorldHelloTrue'],
  ["{{ 'abc'[1] }}{{ 'abc'[-1] }}{{ 'abcdef'[1:4] }}{{ 'abcdef'[::-2] }}{{ [1,2,3][5:] }}", 'bcbcdfdb[]'],
  ['{{ [1,2,3,4][::-1] }}{{ [1,2,3,4][-1:0:-2] }}', '[4, 3, 2, 1][4, 2]'],
  [
    "{{ true }}{{ none }}{{ undefined_name }}{{ {'a': [1, 'x', none, false]} }}",
    "TrueNone{'a': [1, 'x', None, False]}",
  ],
  ["{{ {'b': 1, 'a': 'é<'} | tojson }}", '{"b": 1, "a": "é<"}'],
  ["{{ {'b': [], 'a': 'é'} | tojson(ensure_ascii=true, sort_keys=true) }}", '{"a": "\\u00e9", "b": []}'],
  ["{{ {'a': [1, {}]} | tojson(indent=2) }}", '{\n  "a": [\n    1,\n    {}\n  ]\n}'],
  ["{{ [1, 2] | tojson(separators=(',', ':')) }}", '[1,2]'],
  ['{{ -7 % 3 }} {{ -7 // 2 }} {{ 2 ** 3 ** 2 }} {{ 1 + 2 * 3 }}', '2 -4 64 7'],
  ["{{ 'a' in 'cat' }}{{ 1 in [1, 2] }}{{ 'k' in {'k': 1} }}{{ 'x' not in ['y'] }}", 'TrueTrueTrueTrue'],
  ["{{ [1, 2] == [1, 2] }}{{ {'a': 1} == {'a': 2} }}{{ 1 == true }}{{ '1' == 1 }}", 'TrueFalseTrueFalse'],
  [
    '{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% if i == 3 %}!{% break %}{% endif %}{% endfor %}',
    '023!',
  ],
  [
    "{% for a, b in {'x': 1, 'y': 2}.items() %}{{ loop.index }}{{ a }}{{ b }}{{ ',' if not loop.last }}{% endfor %}",
    '1x1,2y2',
  ],
  ['{% for i in [] %}a{% else %}empty{% endfor %}', 'empty'],
  ['{% for i in [1,2,3,4] if i is odd %}{{ i }}{{ loop.length }}{% endfor %}', '1232'],
  ['{% set x = 1 %}{% for i in [1,2] %}{{ x }}{% set x = x + 1 %}{% endfor %}{{ x }}', '111'],
  ['{% set ns = namespace(n=0) %}{% for i in [1,2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}', '3'],
  [
    "{% macro m(a, b='B') %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }}{{ m(1, 2, 3, c=4) }}",
    "1B[]{}12[3]{'c': 4}",
  ],
  ['{% macro m() %}<{{ caller(7) }}>{% endmacro %}{% call(x) m() %}got {{ x }}{% endcall %}', '<got 7>'],
  ['{% filter upper %}abc{% endfilter %}{% set x %}a{{ 1 }}{% endset %}{{ x }}', 'ABCa1'],
  ["{{ ['b', 'A', 'c'] | sort | join }}{{ {'b': 1, 'a': 2} | dictsort }}", "Abc[['a', 2], ['b', 1]]"],
  ["{{ [{'a': 1}, {'a': 0}] | selectattr('a') | list | length }}{{ [1, 2] | reject('equalto', 1) | list }}", '1[2]'],
  ["{{ [{'a': {'b': 1}}] | map(attribute='a.b') | first }}{{ ['x'] | map('upper') | list }}", "1['X']"],
  ["{{ x | default('d') }}{{ '' | default('e', true) }}{{ ' a ' | trim }}{{ '7' | int + 1 }}", 'dea8'],
  [
    "{{ 'a\\nb' | indent(2) }}|{{ [3, 1] | min }}{{ [1, 1, 2] | unique | list }}{{ 'ab' | reverse | join }}",
    'a\n  b|1[1, 2]ba',
  ],
  ["{{ strftime_now('%d %b %Y %H:%M:%S %A %-d %Q') }}", '04 Jul 2024 17:05:09 Thursday 4 %Q'],
  ['a {#- note -#} b\n{% if true %}\nc\n{% endif %}\n  {% if true %}d{% endif %}', 'ab\nc\nd'],
])('%s', (source, expected) => {
  expect(render(source)).toBe(expected);
});

test('prefers a mapping key when indexed and a method when dotted', () => {
  expect(render("{{ v['items'] }}{{ v.items() }}", { v: { items: 1 } })).toBe("1[['items', 1]]");
});

test('rejects operators between unsupported types and names both types', () => {
  expect(() => render("{{ 'a' + 1 }}")).toThrow('operator "+" does not take string and number');
  expect(() => render("{{ 'a' + none }}")).toThrow('operator "+" does not take string and none');
  expect(() => render('{{ 1 / 0 }}')).toThrow('1 / 0 is not a finite number');
  expect(() => render('{{ range(1, 5, 0) }}')).toThrow('step is 0');
});

test('rejects functions as variables', () => {
  expect(() => render('{{ f() }}', { f: () => 1 })).toThrow(expect.objectContaining({ code: 'template_error' }));
});
