import { expect, test } from 'vitest';
import { createChatTemplate } from '../chat-template.ts';

const VARIABLES = {
  d: { b: 2, a: 1, c: [1, 2] },
  l: [3, 1, 2],
  t: 'Hello',
  n: null,
  deep: { x: { y: [10, { z: 5 }] } },
  people: [
    { name: 'Bo', age: 7, tags: ['x'] },
    { name: 'al', age: 9, tags: [] },
    { name: 'Cy', age: 7 },
  ],
};

const render = (source: string, now = 0): string =>
  createChatTemplate({
    source,
    architecture: null,
    bosToken: '<s>',
    eosToken: '</s>',
    specialSpellings: [],
    now: () => now,
    utcOffsetMinutes: 0,
  }).render([], { variables: VARIABLES }).text;

/** The output of Python's Jinja2 3.1.6 for the same source and variables, with `json.dumps(ensure_ascii=False)` as `tojson`. */
const LIKE_PYTHON: [source: string, expected: string][] = [
  ["{{ {1: 'x'}[1] }}{{ {'1': 'y'}['1'] }}{{ {1: 'x'}[2] }}{{ {1: 'x'}['1'] }}", 'xy'],
  [
    '{{ 1 < 1 }}{{ 1 <= 1 }}{{ 1 > 1 }}{{ 1 >= 1 }}{{ 1 < 2 }}{{ 2 <= 1 }}{{ 2 > 1 }}{{ 1 >= 2 }}',
    'FalseTrueFalseTrueTrueFalseTrueFalse',
  ],
  [
    "{{ 'a' < 'a' }}{{ 'a' <= 'a' }}{{ 'a' > 'a' }}{{ 'a' >= 'a' }}{{ 'a' < 'b' }}{{ 'b' <= 'a' }}{{ 'b' > 'a' }}{{ 'a' >= 'b' }}",
    'FalseTrueFalseTrueTrueFalseTrueFalse',
  ],
  ['{{ true + true }} {{ true < 2 }} {{ 3 - true }} {{ 2 * true }}', '2 True 2 2'],
  ["{{ 1 != 1 }}{{ 1 != 2 }}{{ 'a' != 'a' }}{{ [1] != [1] }}{{ {'a': 1} != {'b': 1} }}", 'FalseTrueFalseFalseTrue'],
  [
    "{{ [] == [] }}{{ [1] == [1, 2] }}{{ [1, [2]] == [1, [2]] }}{{ [1] == 1 }}{{ [1] == {'a': 1} }}{{ none == false }}{{ 0 == false }}{{ '' == false }}",
    'TrueFalseTrueFalseFalseFalseTrueFalse',
  ],
  [
    "{{ {'a': 1} == {'a': 1, 'b': 2} }}{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}{{ {'a': none} == {'b': none} }}{{ {} == [] }}{{ 1 == none }}{{ 'a' == none }}{{ none == none }}{{ true == 'a' }}",
    'FalseTrueFalseFalseFalseFalseTrueFalse',
  ],
  [
    "{{ 'ab' * 2 }}{{ 2 * 'ab' }}{{ 'ab' * 0 }}{{ 'ab' * -1 }}{{ [1, 2] * 2 }}{{ 2 * [1] }}{{ [1] * 0 }}",
    'abababab[1, 2, 1, 2][1, 1][]',
  ],
  ["{{ [1] + [2] }}{{ 'a' + 'b' }}{{ 'a' ~ 1 ~ none ~ true ~ [1] }}", '[1, 2]aba1NoneTrue[1]'],
  [
    '{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 7 / 2 }}',
    '3 -4 1 2 -2 1024 3.5',
  ],
  [
    "{{ -(t|length) }} {{ +3 }} {{ -(2) }} {{ not 1 }} {{ not '' }} {{ not [] }} {{ not {} }} {{ not none }}",
    '-5 3 -2 False True True True True',
  ],
  ["{{ 1 and 0 }} {{ 0 and 1 }} {{ 1 or 0 }} {{ 0 or 'x' }} {{ '' or [] }} {{ [0] and 'y' }}", '0 0 1 x [] y'],
  [
    "{{ 1 in [1] }}{{ 3 in [1] }}{{ 'ell' in t }}{{ 'x' in t }}{{ 'a' in d }}{{ 'z' in d }}{{ 1 in d }}{{ 1 not in [1] }}{{ 2 not in [1] }}{{ '' in '' }}",
    'TrueFalseTrueFalseTrueFalseFalseFalseTrueTrue',
  ],
  ["{{ 'a' if true }}{{ 'b' if false }}{{ 'c' if false else 'd' }}{{ 'e' if 1 else 'f' }}", 'ade'],
  [
    "{{ t[0] }}{{ t[-1] }}{{ l[0] }}{{ l[-1] }}{{ t[9] }}{{ l[9] }}{{ d['a'] }}{{ d.a }}{{ d.zz }}{{ d['zz'] }}{{ deep.x.y[1].z }}{{ deep['x']['y'][0] }}",
    'Ho3211510',
  ],
  [
    '{{ t[1:3] }}|{{ t[:2] }}|{{ t[3:] }}|{{ t[-2:] }}|{{ t[:-2] }}|{{ t[::2] }}|{{ t[1::2] }}|{{ t[::-1] }}|{{ t[3:1] }}|{{ t[9:] }}|{{ t[:99] }}|{{ t[-99:2] }}',
    'el|He|lo|lo|Hel|Hlo|el|olleH|||Hello|He',
  ],
  [
    '{{ l[1:] }}{{ l[:1] }}{{ l[::2] }}{{ l[::-1] }}{{ l[2:0:-1] }}{{ l[0:9:2] }}{{ l[-1:-9:-1] }}{{ l[9:0:-2] }}{{ l[1:1] }}{{ l[0:2:1] }}{{ l[-2:3:2] }}{{ l[2::-2] }}{{ l[:0:-1] }}{{ l[:-3:-1] }}',
    '[1, 2][3][3, 2][2, 1, 3][2, 1][3, 2][2, 1, 3][2][][3, 1][1][2, 3][2, 1][2, 1]',
  ],
  [
    '{{ [0,1,2,3,4,5][1:5:2] }}{{ [0,1,2,3,4,5][5:1:-2] }}{{ [0,1,2,3,4,5][4:0:-3] }}{{ [0,1,2,3,4,5][-9:9:5] }}{{ [0,1,2,3,4,5][9:-9:-5] }}',
    '[1, 3][5, 3][4, 1][0, 5][5, 0]',
  ],
  ["{{ [1,2,3][none:none] }}{{ [1,2,3][none:2] }}{{ 'abc'[::1] }}{{ 'abc'[none:none:-1] }}", '[1, 2, 3][1, 2]abccba'],
  [
    "{{ d.get('a') }}{{ d.get('z') }}{{ d.get('z', 5) }}{{ d.keys() | list }}{{ d.values() | list }}{{ d.items() | list | length }}",
    "1None5['b', 'a', 'c'][2, 1, [1, 2]]3",
  ],
  [
    "{% set x = {'a': 1} %}{{ x.update({'b': 2}) }}{{ x }}{{ x.pop('a') }}{{ x }}{{ x.copy() }}{{ x.update(c=3) }}{{ x }}",
    "None{'a': 1, 'b': 2}1{'b': 2}{'b': 2}None{'b': 2, 'c': 3}",
  ],
  [
    '{% set x = [1] %}{{ x.append(2) }}{{ x }}{{ x.extend([3, 4]) }}{{ x }}{{ x.pop() }}{{ x.pop(0) }}{{ x.pop(-1) }}{{ x }}{{ [1, 1, 2].count(1) }}{{ [5, 6].index(6) }}',
    'None[1, 2]None[1, 2, 3, 4]413[2]21',
  ],
  ['{% set x = [1, 2] %}{{ x.extend(x) }}{{ x }}', 'None[1, 2, 1, 2]'],
  [
    "{{ ' a '.strip() }}|{{ ' a '.lstrip() }}|{{ ' a '.rstrip() }}|{{ 'xax'.strip('x') }}|{{ 'xax'.lstrip('x') }}|{{ 'xax'.rstrip('x') }}|{{ 'xyx'.strip('xy') }}|{{ 'xx'.rstrip('x') }}|{{ 'abc'.strip('') }}|{{ ' b'.strip(none) }}",
    'a|a | a|a|ax|xa|||abc|b',
  ],
  [
    "{{ 'a,b,c'.split(',') }}{{ 'a,b,c'.split(',', 1) }}{{ 'a,b,c'.split(',', 2) }}{{ 'a,b,c'.split(',', 0) }}{{ 'a,b,c'.split(',', 5) }}{{ 'a,b,c'.split(',', -1) }}{{ ''.split(',') }}",
    "['a', 'b', 'c']['a', 'b,c']['a', 'b', 'c']['a,b,c']['a', 'b', 'c']['a', 'b', 'c']['']",
  ],
  [
    "{{ 'a b  c'.split() }}{{ ' a b  c '.split(none, 0) }}{{ 'a b  c'.split(none, 2) }}{{ 'a b c d '.split(none, 3) }}{{ 'a b'.split(none, -1) }}{{ ''.split() }}{{ 'ab'.split(sep='b') }}{{ 'a-b-c'.split('-', maxsplit=1) }}",
    "['a', 'b', 'c']['a b  c ']['a', 'b', 'c']['a', 'b', 'c', 'd ']['a', 'b'][]['a', '']['a', 'b-c']",
  ],
  [
    "{{ 'a,b,c'.rsplit(',', 1) }}{{ 'a,b,c'.rsplit(',', 0) }}{{ 'a,b,c'.rsplit(',', 2) }}{{ 'a,b,c'.rsplit(',') }}{{ 'a,b,c'.rsplit(',', -1) }}{{ 'a,b,c'.rsplit(',', 9) }}",
    "['a,b', 'c']['a,b,c']['a', 'b', 'c']['a', 'b', 'c']['a', 'b', 'c']['a', 'b', 'c']",
  ],
  ["{{ 'a\\nb\\n'.splitlines() }}{{ ''.splitlines() }}{{ 'a\\n\\nb'.splitlines() }}", "['a', 'b'][]['a', '', 'b']"],
  [
    "{{ 'abc'.startswith('a') }}{{ 'abc'.startswith('b') }}{{ 'abc'.startswith(('x', 'ab')) }}{{ 'abc'.startswith(('x', 'y')) }}{{ 'abc'.endswith('c') }}{{ 'abc'.endswith('b') }}",
    'TrueFalseTrueFalseTrueFalse',
  ],
  [
    "{{ 'abc'.removeprefix('a') }}{{ 'abc'.removeprefix('x') }}{{ 'abc'.removesuffix('c') }}{{ 'abc'.removesuffix('x') }}{{ 'abc'.removesuffix('') }}{{ 'abc'.removeprefix('') }}",
    'bcabcababcabcabc',
  ],
  [
    "{{ 'abcb'.find('b') }}{{ 'abc'.find('z') }}{{ 'abab'.count('ab') }}{{ 'aaa'.count('b') }}{{ '-'.join(['a', 'b']) }}{{ ','.join([]) }}",
    '1-120a-b',
  ],
  [
    "{{ '12'.isdigit() }}{{ '1a'.isdigit() }}{{ ''.isdigit() }}{{ ' \\n'.isspace() }}{{ ' a'.isspace() }}{{ ''.isspace() }}",
    'TrueFalseFalseTrueFalseFalse',
  ],
  [
    "{{ 'aXb'.upper() }}{{ 'aXb'.lower() }}{{ 'hello WORLD'.title() }}{{ 'hello WORLD'.capitalize() }}{{ ''.capitalize() }}",
    'AXBaxbHello WorldHello world',
  ],
  [
    "{{ 'aaa'.replace('a', 'b') }}{{ 'aaa'.replace('a', 'b', 1) }}{{ 'aaa'.replace('a', 'b', 2) }}{{ 'aaa'.replace('a', 'b', 3) }}{{ 'aaa'.replace('a', 'b', 9) }}{{ 'aaa'.replace('a', 'b', 0) }}{{ 'aaa'.replace('x', 'b') }}",
    'bbbbaabbabbbbbbaaaaaa',
  ],
  [
    "{{ 'ab'.replace('', '-') }}{{ 'ab'.replace('', '-', 1) }}{{ 'ab'.replace('', '-', 2) }}{{ 'ab'.replace('', '-', 9) }}{{ ''.replace('', 'x') }}{{ 'abab' | replace('ab', 'c') }}{{ 'abab' | replace('ab', 'c', 1) }}",
    '-a-b--ab-a-b-a-b-xcccab',
  ],
  [
    "{{ t | length }}{{ l | length }}{{ d | length }}{{ undefined_thing | length }}{{ l | count }}{{ '' | length }}",
    '533030',
  ],
  [
    "{{ t | upper }}{{ t | lower }}{{ 'a b' | title }}{{ 'aB' | capitalize }}{{ ' a ' | trim }}{{ 5 | string }}{{ none | string }}{{ t | safe }}",
    'HELLOhelloA BAba5NoneHello',
  ],
  [
    "{{ l | first }}{{ l | last }}{{ [] | first }}{{ 'abc' | first }}{{ 'abc' | last }}{{ l | reverse | list }}{{ 'abc' | reverse | join }}{{ l | list }}{{ 'ab' | list }}{{ d | list }}",
    "32ac[2, 1, 3]cba[3, 1, 2]['a', 'b']['b', 'a', 'c']",
  ],
  [
    "{{ l | min }}{{ l | max }}{{ l | sum }}{{ [] | sum }}{{ ['b', 'a'] | min }}{{ ['b', 'a'] | max }}{{ [2, 2] | max }}{{ [] | max }}{{ [1.5, 1] | min }}",
    '1360ab21',
  ],
  [
    "{{ l | sort }}{{ l | sort(reverse=true) }}{{ ['b', 'A', 'c'] | sort }}{{ ['b', 'A', 'c'] | sort(case_sensitive=true) }}{{ ['a', 'B'] | sort(reverse=true) }}{{ ['b', 'A'] | sort(reverse=false) }}",
    "[1, 2, 3][3, 2, 1]['A', 'b', 'c']['A', 'b', 'c']['B', 'a']['A', 'b']",
  ],
  [
    "{{ people | sort(attribute='age') | map(attribute='name') | list }}{{ people | sort(attribute='name') | map(attribute='name') | list }}{{ people | sort(attribute='age', reverse=true) | map(attribute='name') | list }}",
    "['Bo', 'Cy', 'al']['al', 'Bo', 'Cy']['al', 'Bo', 'Cy']",
  ],
  [
    "{{ {'b': 1, 'A': 3, 'c': 2} | dictsort | map('join', ':') | join(',') }}{{ {'b': 1, 'A': 3, 'c': 2} | dictsort(by='value') | map('join', ':') | join(',') }}{{ {'b': 1, 'A': 3} | dictsort(reverse=true) | map('join', ':') | join(',') }}{{ {'b': 1, 'A': 3} | dictsort(case_sensitive=true) | map('join', ':') | join(',') }}",
    'A:3,b:1,c:2b:1,c:2,A:3b:1,A:3A:3,b:1',
  ],
  [
    "{{ people | map(attribute='age', default='none') | list }}{{ people[:1] | map(attribute='tags.0') | list }}{{ [{'a': 1}] | map(attribute='a.b', default=0) | list }}{{ people | map(attribute='name') | join('-') }}{{ [1, 2] | map('string') | list }}{{ ['a,b'] | map('replace', ',', '.') | list }}{{ [{}] | map(attribute='q', default=4) | list }}",
    "[7, 9, 7]['x'][0]Bo-al-Cy['1', '2']['a.b'][4]",
  ],
  [
    "{{ [0, 1, 2] | select | list }}{{ [0, 1, 2] | reject | list }}{{ [1, 2, 3] | select('odd') | list }}{{ [1, 2, 3] | reject('odd') | list }}{{ [1, 2, 3] | select('equalto', 2) | list }}{{ [1, 2] | select('ne', 2) | list }}",
    '[1, 2][0][1, 3][2][2][1]',
  ],
  [
    "{{ people | selectattr('tags') | map(attribute='name') | list }}{{ people | rejectattr('tags') | map(attribute='name') | list }}{{ people | selectattr('age', 'equalto', 7) | map(attribute='name') | list }}{{ people | rejectattr('age', '==', 7) | map(attribute='name') | list }}{{ people | selectattr('tags', 'defined') | list | length }}{{ people | rejectattr('tags', 'undefined') | list | length }}",
    "['Bo']['al', 'Cy']['Bo', 'Cy']['al']22",
  ],
  [
    "{{ ['a', 'b'] | join }}{{ ['a', 1] | join(', ') }}{{ [] | join('x') }}{{ people | join('/', attribute='name') }}{{ 'abc' | join('-') }}{{ l | join(d=':') }}",
    'aba, 1Bo/al/Cya-b-c3:1:2',
  ],
  ["{{ [1, 2, 1, 3, 2] | unique | list }}{{ ['x', 'x'] | unique | list }}", "[1, 2, 3]['x']"],
  [
    "{{ nothing | default('d') }}{{ none | default('d') }}{{ none | default('d', true) }}{{ '' | default('e', true) }}{{ '' | default('e') }}{{ 0 | default(7, boolean=true) }}{{ 'v' | default('d', true) }}{{ nothing | d('x') }}{{ nothing | default }}|{{ 0 | default(7, false) }}",
    'dNonede7vx|0',
  ],
  [
    "{{ '42' | int }}{{ 'x' | int }}{{ 'x' | int(5) }}{{ 3.9 | int }}{{ '3.5' | float }}{{ 'x' | float(2.5) }}{{ -3.7 | int }}{{ 'x' | int(default=6) }}",
    '420533.52.5-36',
  ],
  ['{{ -3 | abs }}{{ 3 | abs }}{{ 2.5678 | round(2) }}{{ 2.4 | round | int }}{{ 26 | round(-1) | int }}', '332.57230'],
  [
    "{{ 'a\\nb\\n\\nc' | indent }}|{{ 'a\\nb' | indent(2) }}|{{ 'a\\nb' | indent(2, true) }}|{{ 'a\\n\\nb' | indent(2, false, true) }}|{{ 'a\\nb' | indent('>') }}|{{ 'a\\nb' | indent(width=1, first=true) }}|{{ '\\na' | indent(1, true, true) }}|{{ 'a' | indent(0) }}",
    'a\n    b\n\n    c|a\n  b|  a\n  b|a\n  \n  b|a\n>b| a\n b| \n a|a',
  ],
  [
    "{{ d.items() | map('first') | list }}{{ d | items | map('last') | list }}{{ 5 | default([]) }}",
    "['b', 'a', 'c'][2, 1, [1, 2]]5",
  ],
  [
    "{{ d | tojson }}{{ [] | tojson }}{{ {} | tojson }}{{ none | tojson }}{{ true | tojson }}{{ 1.5 | tojson }}{{ 'a\"b\\\\' | tojson }}{{ [none, [1]] | tojson }}",
    '{"b": 2, "a": 1, "c": [1, 2]}[]{}nulltrue1.5"a\\"b\\\\"[null, [1]]',
  ],
  [
    "{{ {'b': {'d': 1, 'c': 2}, 'a': []} | tojson(indent=2) }}",
    '{\n  "b": {\n    "d": 1,\n    "c": 2\n  },\n  "a": []\n}',
  ],
  [
    "{{ {'b': 1, 'a': 2, 'c': 0} | tojson(sort_keys=true) }}{{ {'a': [1, 2]} | tojson(separators=(',', ':')) }}{{ [1, 2] | tojson(indent=0) }}{{ [1, [2]] | tojson(indent=1, separators=(';', '=')) }}",
    '{"a": 2, "b": 1, "c": 0}{"a":[1,2]}[\n1,\n2\n][\n 1;\n [\n  2\n ]\n]',
  ],
  [
    "{{ 'é😀a' | tojson }}{{ 'é😀a~' | tojson(ensure_ascii=true) }}{{ {1: 2} | tojson }}",
    '"é😀a""\\u00e9\\ud83d\\ude00a~"{"1": 2}',
  ],
  [
    "{{ [1, 'a', none, true, 1.5, {'k': \"it's\"}] }}{{ \"a'b\\\"c\" }}{{ [\"a'b\\\"c\", 'a\"b', \"a'b\", 'l\\nm\\tn\\\\o'] }}{{ {} }}{{ [] }}{{ {'a': {'b': []}} }}",
    "[1, 'a', None, True, 1.5, {'k': \"it's\"}]a'b\"c['a\\'b\"c', 'a\"b', \"a'b\", 'l\\nm\\tn\\\\o']{}[]{'a': {'b': []}}",
  ],
  [
    '{{ 1 is odd }}{{ 2 is odd }}{{ 2 is even }}{{ 1 is even }}{{ -1 is odd }}{{ 0 is even }}',
    'TrueFalseTrueFalseTrueTrue',
  ],
  [
    '{{ x is defined }}{{ t is defined }}{{ x is undefined }}{{ t is undefined }}{{ n is none }}{{ t is none }}{{ t is not none }}',
    'FalseTrueTrueFalseTrueFalseTrue',
  ],
  [
    "{{ true is true }}{{ 1 is true }}{{ false is false }}{{ 0 is false }}{{ true is boolean }}{{ 1 is boolean }}{{ 1 is number }}{{ 'a' is number }}{{ 1 is integer }}{{ 1.5 is integer }}{{ 1.5 is float }}{{ 1 is float }}",
    'TrueFalseTrueFalseTrueFalseTrueFalseTrueFalseTrueFalse',
  ],
  [
    "{{ 'a' is string }}{{ 1 is string }}{{ d is mapping }}{{ l is mapping }}{{ l is sequence }}{{ 't' is sequence }}{{ d is sequence }}{{ 1 is sequence }}{{ l is iterable }}{{ 1 is iterable }}{{ range is callable }}{{ 1 is callable }}",
    'TrueFalseTrueFalseTrueTrueTrueFalseTrueFalseTrueFalse',
  ],
  [
    "{{ 'a' is lower }}{{ 'A' is lower }}{{ 'A' is upper }}{{ 'a' is upper }}{{ 'aB' is lower }}{{ 'aB' is upper }}",
    'TrueFalseTrueFalseFalseFalse',
  ],
  [
    "{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }};{% endfor %}",
    '1032TrueFalse31a;2121FalseFalse332b;3210FalseTrue31a;',
  ],
  [
    "{% for k in d %}{{ k }}{% endfor %}{% for c in 'ab' %}{{ c }}.{% endfor %}{% for x in missing %}x{% else %}none{% endfor %}{% for x in [1] %}y{% else %}none{% endfor %}",
    'baca.b.noney',
  ],
  [
    '{% for i in l if i > 1 %}{{ i }}{{ loop.last }}{% else %}-{% endfor %}{% for i in l if i > 9 %}{{ i }}{% else %}-{% endfor %}',
    '3False2True-',
  ],
  ["{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }}{% endfor %}{% set p, q = 'xy' %}{{ p }}{{ q }}", '1234xy'],
  [
    '{% for i in range(3) %}{% for j in range(3) %}{% if j == 1 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}',
    '00 10 20 ',
  ],
  [
    "{% if 0 %}a{% elif 1 %}b{% else %}c{% endif %}{% if [] %}a{% elif '' %}b{% else %}c{% endif %}{% if not l %}a{% endif %}",
    'bc',
  ],
  [
    '{% macro f(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(1, c=9) }}{{ f(b=5, a=4) }}{{ f(1, none) }}',
    '1211311294541None1',
  ],
  [
    '{% macro g() %}{{ varargs | list }}{{ kwargs }}{% endmacro %}{{ g(1, 2, k=3) }}{% macro h(x) %}{{ varargs | list }}{% endmacro %}{{ h(1) }}{{ h(1, 2) }}',
    "[1, 2]{'k': 3}[][2]",
  ],
  [
    "{% macro f(a, b) %}{{ a }}-{{ b }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(**{'b': 4, 'a': 3}) }}{{ f(*[1], **{'b': 2}) }}",
    '1-23-41-2',
  ],
  [
    '{{ range(3) | list }}{{ range(1, 4) | list }}{{ range(0, 7, 3) | list }}{{ range(3, 0, -1) | list }}{{ range(3, 0) | list }}{{ range(0) | list }}{{ range(5, 5) | list }}{{ range(1, 7, 2) | list }}',
    '[0, 1, 2][1, 2, 3][0, 3, 6][3, 2, 1][][][][1, 3, 5]',
  ],
  [
    "{{ dict(a=1) }}{{ dict({'b': 2}, a=1) }}{% set ns = namespace(a=1) %}{{ ns.a }}{% set ns.b = 2 %}{{ ns.b }}{{ ns.zz }}{% set m = namespace({'q': 1}, r=2) %}{{ m.q }}{{ m.r }}",
    "{'a': 1}{'b': 2, 'a': 1}1212",
  ],
  [
    "{% set x %}a{{ 1 }}{% endset %}{{ x }}{% filter upper %}b{% endfilter %}{% filter replace('c', 'd') %}cc{% endfilter %}",
    'a1Bdd',
  ],
  [
    "{{ 'a' 'b' }}{{ (1, 2) | list }}{{ 1 if l is defined and l else 2 }}{{ l is defined and 5 in l or 'no' }}",
    'ab[1, 2]1no',
  ],
  [
    "{{ 10 | string | length }}{{ [l, l] | map('length') | list }}{{ [[2, 1]] | map('sort') | list }}{{ [[1, 2], [3]] | map('join', '+') | list }}",
    "2[3, 3][[1, 2]]['1+2', '3']",
  ],
];

test.each(LIKE_PYTHON)('%s', (source, expected) => {
  expect(render(source)).toBe(expected);
});

/** Where Python fails, or prints the address of an object. */
const OUR_OWN: [source: string, expected: string][] = [
  ["{{ x in nothing }}{{ [1] in {'a': 1} }}{{ none in {'a': 1} }}", 'FalseFalseFalse'],
  ["{{ t[1.5] }}{{ d[none] }}{{ nothing[0] }}{{ nothing.x }}{{ l.nope }}{{ true.x }}{{ l['0'] }}{{ d[7] }}|", 'e|'],
  ['{% for x in none %}a{% else %}b{% endfor %}', 'b'],
  ["{{ {'a': 1}.pop('z') }}{{ {'a': 1}.pop('z', 3) }}|", '3|'],
  ['{{ [1] | tojson(indent=64) | length }}{{ [1, 2] | tojson(separators=none) }}', '69[1, 2]'],
  [
    '{{ range }}{{ namespace(a=1) }}{{ namespace(a=1) | tojson }}{{ nothing | tojson }}',
    '<function>{\'a\': 1}{"a": 1}null',
  ],
  ['{{ 5 | items }}{{ t | items }}{{ [nothing, range] }}', '[][][None, <function>]'],
  ["{{ 'a\\nb' | indent(-1) }}{{ 'x' | int(none) }}{{ none | int }}", 'a\nb00'],
  ['{{ 1.25 | round(99) }} {{ 12345.678 | round(-2) }} {{ 5 | round(-99) }}', '1.25 12300 0'],
  ["{{ d['items'] }}{{ t['upper']() }}{{ l['append'](1) }}", '<function>HELLONone'],
  ["{{ '٣'.isdigit() }}{{ 'é'.isdigit() }}", 'TrueFalse'],
  [
    '{{ namespace(a=1) == namespace(a=1) }}{{ namespace() is namespace }}{{ {} is namespace }}{{ namespace() is mapping }}',
    'FalseTrueFalseFalse',
  ],
  [
    "{{ [{'n': {'m': 3}}, {'n': {}}] | selectattr('n.m') | list | length }}{{ [namespace(a=5)] | map(attribute='a') | list }}{{ [[7, 8]] | map(attribute='1') | list }}{{ ['s'] | map(attribute='x', default=0) | list }}",
    '1[5][8][0]',
  ],
];

test.each(OUR_OWN)('%s', (source, expected) => {
  expect(render(source)).toBe(expected);
});

const FAILURES: [source: string, message: string][] = [
  ["{{ 'a' < 1 }}", 'operator "<" does not take string and number'],
  ['{{ [1] < [2] }}', 'operator "<" does not take list and list'],
  ["{{ 1 < 'a' }}", 'operator "<" does not take number and string'],
  ['{{ 1 in 5 }}', 'operator "in" does not take number and number'],
  ["{{ 1 in 'a' }}", 'operator "in" does not take number and string'],
  ["{{ 1 + 'a' }}", 'operator "+" does not take number and string'],
  ['{{ [1] + 1 }}', 'operator "+" does not take list and number'],
  ['{{ 1 + [1] }}', 'operator "+" does not take number and list'],
  ["{{ 'a' + [] }}", 'operator "+" does not take string and list'],
  ["{{ 'a' * 'b' }}", 'operator "*" does not take string and string'],
  ['{{ none * 2 }}', 'operator "*" does not take none and number'],
  ['{{ 2 * none }}', 'operator "*" does not take number and none'],
  ["{{ 'a' - 1 }}", 'operator "-" does not take string and number'],
  ['{{ 5[0] }}', 'number cannot be indexed by number'],
  ['{{ t[none] }}', 'string cannot be indexed by none'],
  ['{{ true[0] }}', 'boolean cannot be indexed by number'],
  ['{{ l[true] }}', 'list cannot be indexed by boolean'],
  ['{{ 5 | length }}', 'number has no length'],
  ['{{ none | length }}', 'none has no length'],
  ['{{ 5[1:2] }}', 'number cannot be sliced'],
  ['{{ d[1:2] }}', 'mapping cannot be sliced'],
  ["{{ t['a':2] }}", 'slice bounds must be integers, got string'],
  ['{{ t[1:true] }}', 'slice bounds must be integers, got boolean'],
  ['{{ t[1.5:] }}', 'slice bounds must be integers, got number'],
  ['{{ t[::0] }}', 'slice step is 0'],
  ['{% for x in 5 %}{% endfor %}', 'number cannot be iterated'],
  ['{{ [1] | selectattr(1) }}', 'selectattr takes the name of an attribute'],
  ["{{ 'a' | nope }}", 'unknown filter "nope"'],
  ["{{ 'a' is nope }}", 'unknown test "nope"'],
  ["{{ 'a' is odd }}", 'odd and even take a number'],
  ["{{ 'a'.join(5) }}", 'join() takes a list'],
  ["{{ 'a'.join([1]) }}", 'join() takes a list of strings'],
  ["{{ 'a'.split('') }}", 'split() requires a non-empty separator'],
  ["{{ 'a'.startswith(5) }}", 'argument "prefix" must be a string, got number'],
  ["{{ 'a'.startswith([5]) }}", 'startswith() and endswith() take strings'],
  ['{{ [].pop() }}', 'pop(-1): a list of 0 has no such index'],
  ['{{ [1].pop(1) }}', 'pop(1): a list of 1 has no such index'],
  ['{{ [1].pop(-2) }}', 'pop(-2): a list of 1 has no such index'],
  ['{{ [1].extend(5) }}', 'extend() takes a list, got number'],
  ['{{ {}.get([]) }}', 'mapping keys must be strings or numbers, got list'],
  ['{{ [1] | tojson(indent=65) }}', 'tojson indent must be 0 to 64, got 65'],
  ['{{ [1] | tojson(indent=-1) }}', 'tojson indent must be 0 to 64, got -1'],
  ['{{ [1] | tojson(indent=1.5) }}', 'tojson indent must be 0 to 64, got 1.5'],
  ["{{ [1] | tojson(indent='x') }}", 'tojson indent must be a number'],
  ["{{ [1] | tojson(separators=[',']) }}", 'tojson separators must be two strings'],
  ["{{ [1] | tojson(separators=['a', 1]) }}", 'tojson separators must be two strings'],
  ["{{ [1] | tojson(separators='ab') }}", 'tojson separators must be two strings'],
  ['{{ range | tojson }}', 'a function cannot be written as JSON'],
  ['{% set a, b = [1] %}', 'cannot unpack 1 values into 2 names'],
  ['{% set d.x = 1 %}', "set can write to a namespace's attributes only, not to mapping"],
  ['{{ t.x() }}', '"x" is undefined, not a function'],
  ['{{ nothing() }}', '"nothing" is undefined, not a function'],
  ['{{ (1)() }}', 'an expression is number, not a function'],
  ['{{ l[0]() }}', 'an expression is number, not a function'],
  ['{{ range(*5) }}', 'number cannot be unpacked into arguments'],
  ['{{ range(**[1]) }}', 'list cannot be unpacked into arguments'],
  ['{{ range(*d) }}', 'mapping cannot be unpacked into arguments'],
  ['{{ range(1.5) }}', 'argument "stop" must be an integer, got number 1.5'],
  ["{{ range('a') }}", 'argument "stop" must be an integer, got string "a"'],
  ['{{ namespace(5) }}', 'namespace() takes a mapping, got number'],
  ['{{ -t }}', '"-" before string'],
  ['{{ -true }}', '"-" before boolean'],
  ['{{ 5 | dictsort }}', 'dictsort takes a mapping, got number'],
  ["{{ 'a' | indent(1.5) }}", 'argument "width" must be an integer, got number 1.5'],
  ['{{ {[1]: 2} }}', 'mapping keys must be strings or numbers, got list'],
  ['{{ {none: 2} }}', 'mapping keys must be strings or numbers, got none'],
  ['{{ 10 ** 400 }}', '10 ** 400 is not a finite number'],
  ['{{ 5 % 0 }}', '5 % 0 is not a finite number'],
  ["{{ ['a', 1] | sort }}", 'operator "sort" does not take'],
  ["{{ 'a' | join(1) }}", 'argument "d" must be a string, got number'],
  ['{{ [1] | map }}', 'argument "filter" must be a string, got undefined'],
];

test.each(FAILURES)('%s fails', (source, message) => {
  expect(() => render(source)).toThrow(
    expect.objectContaining({
      code: 'template_error',
      message: expect.stringContaining(`chat template failed: ${message}`),
    }),
  );
});

/** A syntax error is at the tag that cannot be read, or at none if the template ends too early. */
const SYNTAX_ERRORS: [source: string, place: string][] = [
  ["a\n  {{ 'x }}", '(line 2, column 3)'],
  ['{% if %}', '(line 1, column 1)'],
  ['{{ 1 }}\n{% for x in %}', '(line 2, column 1)'],
  ['{{ 1 }}{% endif %}', '(line 1, column 8)'],
  ['a {% if true %}', 'unexpected end, a tag is not closed'],
  ['{# c #}\n\n   {{ ( }}', '(line 3, column 4)'],
  ['x\n{{ 1 + }}\n{{ 2 }}', '(line 2, column 1)'],
  ['{{ 1 }}{# a #}{% bad %}', '(line 1, column 15)'],
  ["{{ 1 }}\n {{ 'é' ? }}", '(line 2, column 2)'],
  ['{{ 1 }}{{ 2 }}{{ 3 }}{{ ? }}{{ 4 }}{{ 5 }}', '(line 1, column 22)'],
  ['{{ ? }}{{ 4 }}{{ 5 }}', '(line 1, column 1)'],
];

test.each(SYNTAX_ERRORS)('the place of the error in %j', (source, place) => {
  expect(() => render(source)).toThrow(place);
});

test('writes times with the directives of C in English', () => {
  const at = (hour: number, minute: number): string =>
    render(
      "{{ strftime_now('%Y %y %m %B %b %d %-d %A %a %H %I %M %S %p %% %Q') }}",
      Date.UTC(2009, 0, 4, hour, minute, 5),
    );
  expect(at(0, 0)).toBe('2009 09 01 January Jan 04 4 Sunday Sun 00 12 00 05 AM % %Q');
  expect(at(11, 59)).toBe('2009 09 01 January Jan 04 4 Sunday Sun 11 11 59 05 AM % %Q');
  expect(at(12, 0)).toBe('2009 09 01 January Jan 04 4 Sunday Sun 12 12 00 05 PM % %Q');
  expect(at(13, 7)).toBe('2009 09 01 January Jan 04 4 Sunday Sun 13 01 07 05 PM % %Q');
});
