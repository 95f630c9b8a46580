import { BUILTIN_TEMPLATES, createChatTemplate } from '../../src/chat/index.ts';
import { decode, encode, type FuzzTarget } from '../target.ts';

const MESSAGES = [
  { role: 'system', content: 'be kind' },
  { role: 'user', content: 'hello {{ x }}' },
  { role: 'assistant', content: 'hi' },
  { role: 'user', content: 'again' },
] as const;

export const templateTarget: FuzzTarget = {
  name: 'template',
  words: ['{%', '%}', '{{', '}}', '{#', 'for m in messages', 'endfor', 'if', 'elif', 'else', 'endif', 'set x = ', 'macro f(a)', 'endmacro', "['role']", '.content', '| trim', '| tojson', 'loop.index0', 'namespace(a=1)', 'range(9)', '~', 'is defined', "raise_exception('no')", 'not in', '[::-1]', 'strftime_now'], // prettier-ignore
  seeds: () => [
    ...BUILTIN_TEMPLATES.slice(0, 4).map((template) =>
      encode((template as unknown as { source: string }).source ?? ''),
    ),
    encode(
      "{% for m in messages %}{{ m['role'] }}: {{ m.content | trim }}\n{% endfor %}{% if add_generation_prompt %}a{% endif %}",
    ),
    encode(
      '{%- set ns = namespace(n=0) -%}{% macro f(x, y=2) %}{{ x ~ y }}{% endmacro %}{{ f(1) }}{{ messages[::-1] | tojson }}',
    ),
  ],
  run(bytes) {
    const template = createChatTemplate({
      source: decode(bytes),
      architecture: null,
      bosToken: '<s>',
      eosToken: '</s>',
      specialSpellings: ['<s>', '</s>'],
      limits: { maxSteps: 100_000 } as never,
    });
    return template.render(MESSAGES as never, { addGenerationPrompt: true } as never);
  },
};
